// Entries and logs for specs of the audit log.

import { AuditLog } from '../../../src/auth/audit/audit-log.ts';
import type { Config } from '../../../src/config/config.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { AuditEntry } from '../../../src/domain/events/audit-entries.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { AuditBounds, AuditPage } from '../../../src/persistence/store.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { stoppedClock } from '../auth-harness.ts';

export const entry = (subject: string): Omit<AuditEntry, 'id' | 'at'> => ({
  actor: 'user:1',
  actorName: 'ada',
  action: 'POST /auth/users',
  subject,
  status: 201,
});

export const SETTINGS: Config['audit'] = {
  ...{ recordsCalls: true, callArguments: 'digest', keptCalls: 1_000, keptDays: 0 },
};

export function createAuditLog(settings: Config['audit'] = { ...SETTINGS, recordsCalls: false }) {
  const clock = stoppedClock();
  const store = new MemoryStore();
  const appended: number[] = [];
  const warnings: unknown[][] = [];
  const database = {
    failure: undefined as Error | undefined,
    /** Each write waits for it. */
    gate: undefined as Promise<void> | undefined,
    trims: [] as AuditBounds[],
    serverTimeMs: async (): Promise<number | undefined> => undefined,
    onAppend: () => {},
    failNextList: false,
    lists: 0,
    mostLists: 0,
  };
  let lists = 0;
  const append = async (count: number, work: () => Promise<void>): Promise<void> => {
    if (database.failure !== undefined) throw database.failure;
    appended.push(count);
    await database.gate;
    database.onAppend();
    await work();
  };
  const audit = new AuditLog({
    store: {
      append: (entries) => append(entries.length, () => store.audit.append(entries)),
      appendCalls: (block) => append(block.calls, () => store.audit.appendCalls(block)),
      list: (page, inTurn = (part) => part()) =>
        store.audit.list(page, (part) =>
          inTurn(async () => {
            lists += 1;
            database.lists += 1;
            database.mostLists = Math.max(database.mostLists, lists);
            await passTurns(1);
            lists -= 1;
            if (!database.failNextList) return part();
            database.failNextList = false;
            throw databaseUnavailable(new Error('refused'));
          }),
        ),
      trim: async (bounds) => {
        database.trims.push(bounds);
        throw new Error('too busy');
      },
    },
    log: { warn: (...args: unknown[]) => void warnings.push(args) },
    clock,
    serverTimeMs: () => database.serverTimeMs(),
    settings,
  });
  const passHours = (hours: number) => clock.pass(hours * 3_600_000);
  /** Records an entry; the oldest id that a trim then keeps. */
  const trimmedFrom = async (): Promise<string> => {
    audit.record(entry('more'));
    await audit.list({ limit: 1 });
    const [bounds] = database.trims.splice(0);
    return bounds === undefined ? 'no trim' : (bounds.from ?? 'no age');
  };
  /** Address, status and number of suppressed requests of all entries, oldest first. */
  const suppressed = async (log: { list(page: AuditPage): Promise<AuditEntry[]> } = audit) =>
    (await log.list({ limit: 2_000 }))
      .toReversed()
      .map(({ address = 'none', status, suppressed: count = 'none' }) => [address, status, count]);
  return { audit, clock, store, appended, warnings, database, passHours, trimmedFrom, suppressed };
}
