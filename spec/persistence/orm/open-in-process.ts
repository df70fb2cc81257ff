// A process that receives the URL of a database, opens and changes it once, and reports the outcome.

// Eight of them load the same modules at once.
const { keepCompiledCode } = await import(new URL('../../../bin/compile-cache.mjs', import.meta.url).href);
keepCompiledCode();
const { openStore } = await import('../../../src/persistence/open-store.ts');

process.once('message', async (url) => {
  try {
    const store = await openStore(String(url), { cwd: '/', migrations: 'apply' });
    await store.templates.save({ name: `template-${process.pid}`, loadBalancer: {} });
    await store.close();
    process.send?.('open');
  } catch (thrown) {
    process.send?.(String(thrown));
  }
});
process.send?.('ready');
