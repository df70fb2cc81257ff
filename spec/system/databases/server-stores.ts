// Stores in new databases on a real server, for the specs of single servers.

import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { endOf } from '../../helpers/outcome.ts';
import { freshDatabase, type Service } from '../../helpers/services/services.ts';
import { cipher } from '../../persistence/every-conformance.ts';

/** Opens a store in an empty database that is deleted when the store is closed. */
export async function freshStore(service: Service): Promise<Store & { readonly url: string }> {
  const { url, drop } = await freshDatabase(reachable(service));
  const store = await openStore(url, { cwd: '/', cipher, migrations: 'apply' });
  const close = store.close.bind(store);
  return Object.assign(store, {
    url,
    close: async () => {
      await close();
      await drop();
    },
  });
}

/** The URL of a service that `test.needs` has found. */
export function reachable({ url, skip }: Service): { readonly url: string } {
  if (url === undefined) throw new Error(skip);
  return { url };
}

/** The outcomes of the same work, `times` times in sequence: codes of errors, `done` without one. */
export async function codesOf(work: () => Promise<unknown>, times: number): Promise<string[]> {
  const codes: string[] = [];
  for (let left = times; left > 0; left -= 1) codes.push(await endOf(work()));
  return codes;
}

/** The result of `fatesOfChanges` when no change was sent to the database. */
export const UNDONE = ['DATABASE_UNAVAILABLE no'];

/** The distinct outcomes of changes of every kind; `done` without an error. */
export async function fatesOfChanges(store: Store): Promise<string[]> {
  const changes = [
    () => store.templates.save({ name: 'demo', loadBalancer: {} }),
    () => store.instances.delete('demo', 'a'),
    () => store.settings.exchange('name', undefined, 'value'),
    () => store.accounts.deleteApiKey('a'),
  ];
  const fates = await Promise.all(
    changes.map((change) =>
      change().then(
        () => 'done',
        (thrown: unknown) =>
          thrown instanceof GatewayError ? `${thrown.code} ${thrown.delivered}` : String(thrown),
      ),
    ),
  );
  return [...new Set(fates)];
}
