// Settings of the whole installation on a database.

import { UniqueConstraintViolationException } from '@mikro-orm/core';
import { fromDocument, toDocument } from './documents.ts';
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
    await this.#session.writeAlone(async (em, { settings }) => {
      try {
        await em.insert(settings, { name, value: toDocument(value) });
      } catch (thrown) {
        // Another node was first: what it wrote counts.
        if (!(thrown instanceof UniqueConstraintViolationException)) throw thrown;
      }
    });
    return (await this.read(name)) ?? value;
  }
}
