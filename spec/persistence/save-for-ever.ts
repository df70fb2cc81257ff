// A process that saves templates in the database of its argument, several at a time, and tells each that was answered.

import { openStore } from '../../src/persistence/open.ts';

const store = await openStore(process.argv[2] ?? '', { cwd: '/', migrations: 'apply' });
for (let round = 0; ; round += 1) {
  const names = Array.from({ length: 8 }, (_, index) => `template-${round}-${index}`);
  await Promise.all(
    names.map(async (name) => {
      await store.saveTemplate({ name, loadBalancer: {} });
      process.send?.(name);
    }),
  );
}
