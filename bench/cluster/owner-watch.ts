// Reads all the time from the database which life has each session and the program, and which lives have ended, over a connection of its own.

import { setTimeout as delay } from 'node:timers/promises';
import { MikroORM as MariaDb } from '@mikro-orm/mysql';
import { MikroORM as PostgreSql } from '@mikro-orm/postgresql';
import { nowMs } from './history.ts';
import type { Owners } from './owners.ts';

const READ_MS = 200;

interface OwnerWatch {
  readonly owners: Owners;
  /** Id of the node that has the lease of the program. */
  readonly runner: () => string | undefined;
  stop(): Promise<void>;
}

export async function watchOwners(url: string): Promise<OwnerWatch> {
  const options = { clientUrl: url, entities: [], discovery: { warnWhenNoEntities: false } };
  const orm = await (url.startsWith('postgres') ? PostgreSql.init(options) : MariaDb.init(options));
  const lives = new Map<string, { life: string; sinceMs: number }[]>();
  const endedMs = new Map<string, number>();
  let runner: string | undefined;
  let isOver = false;
  const rowsOf = (columns: string): Promise<Record<string, string>[]> =>
    orm.em.getConnection().execute(`select ${columns}`, [], 'all');
  const read = async (): Promise<void> => {
    const sessions = await rowsOf(
      `${orm.em.getPlatform().quoteIdentifier('key')} as name, life from sessions`,
    );
    const ended = await rowsOf('life from nodes where end_cause is not null');
    const [lease] = await rowsOf('node from programs p join nodes n on p.life = n.life');
    runner = lease?.node;
    const atMs = nowMs();
    for (const { name = '', life = '' } of sessions) {
      const known = lives.get(name) ?? [];
      if (known.length === 0) lives.set(name, known);
      if (known.at(-1)?.life !== life) known.push({ life, sinceMs: atMs });
    }
    for (const { life = '' } of ended) if (!endedMs.has(life)) endedMs.set(life, atMs);
  };
  const reading = (async () => {
    while (!isOver) {
      await read();
      await delay(READ_MS);
    }
  })();
  return {
    owners: { lives, endedMs },
    runner: () => runner,
    stop: async () => {
      isOver = true;
      await reading.finally(() => orm.close(true));
    },
  };
}
