// Settings of the whole installation on a database.

import { UniqueConstraintViolationException } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { fromDocument, toDocument } from './entities.ts';
import type { Tables } from './entities.ts';
import type { OrmSession } from './orm-session.ts';
import type { SettingStore } from './store.ts';

export class OrmSettings implements SettingStore {
  readonly #session: OrmSession;

  constructor(session: OrmSession) {
    this.#session = session;
  }

  read(name: string): Promise<string | undefined> {
    return this.#session.run(async (em, { settings }) => {
      const row = await em.findOne(settings, { name }, { disableIdentityMap: true });
      // Written by `ensure`.
      return row === null ? undefined : (fromDocument(row.value) as string);
    });
  }

  async ensure(name: string, value: string): Promise<string> {
    const before = await this.read(name);
    if (before !== undefined) return before;
    await this.#session.write((em, { settings }) =>
      insertUnlessThere(em, settings, { name, value: toDocument(value) }),
    );
    return (await this.read(name)) ?? value;
  }

  exchange(name: string, before: string | undefined, after: string | undefined): Promise<boolean> {
    return this.#session.write(async (em, { settings }) => {
      // Locks the row, if there is one: what is read next holds until the end of the transaction.
      await em.nativeUpdate(settings, { name }, { name });
      const row = await em.findOne(settings, { name }, { disableIdentityMap: true });
      if ((row === null ? undefined : fromDocument(row.value)) !== before) return false;
      if (after === undefined) await em.nativeDelete(settings, { name });
      else if (row !== null) await em.nativeUpdate(settings, { name }, { value: toDocument(after) });
      else return insertUnlessThere(em, settings, { name, value: toDocument(after) });
      return true;
    });
  }
}

/** False when another node was first. */
async function insertUnlessThere(
  em: SqlEntityManager,
  settings: Tables['settings'],
  row: { readonly name: string; readonly value: string },
): Promise<boolean> {
  try {
    await em.insert(settings, row);
    return true;
  } catch (thrown) {
    if (thrown instanceof UniqueConstraintViolationException) return false;
    throw thrown;
  }
}
