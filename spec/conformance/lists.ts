// The conformance tests for the stored lists of templates in a Store.

import * as assert from 'uvu/assert';
import { MAX_LIST_DAYS, MAX_STORED_LISTS, type Store, type StoredList } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

const DAY_MS = 24 * 60 * 60_000;

/** `at`: in minutes. */
function listOf(key: string, at = 0, value = 'v', template = 't'): StoredList {
  return { key, template, value, readAt: new Date(Date.UTC(2026, 5, 1) + at * 60_000).toISOString() };
}

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function listConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'lists: ');

  declare(
    'a list of any text is found again until it is replaced, and changes no revision',
    async (store) => {
      const { lists } = store;
      const revision = await store.revision();
      assert.is(await lists.find('k'), undefined);
      const first = listOf('k', 0, HOSTILE_TEXTS.join());
      await lists.save(first);
      assert.equal(await lists.find('k'), first);
      assert.is(await lists.find('K'), undefined);
      const second = listOf('k', 1, 'x'.repeat(100_000));
      await lists.save(second);
      assert.equal(await lists.find('k'), second);
      assert.is(await store.revision(), revision);
    },
  );

  declare('of one template the newest ones stay, those of others are not touched', async ({ lists }) => {
    await lists.save(listOf('other', 0, 'v', 'T'));
    for (let at = 0; at <= MAX_STORED_LISTS; at++) await lists.save(listOf(`k${at}`, at));
    assert.is(await lists.find('k0'), undefined);
    assert.is((await lists.find('k1'))?.key, 'k1');
    assert.is((await lists.find(`k${MAX_STORED_LISTS}`))?.key, `k${MAX_STORED_LISTS}`);
    assert.is((await lists.find('other'))?.template, 'T');
  });

  declare('a list that was not saved for a long time is dropped with a later one', async ({ lists }) => {
    await lists.save(listOf('old'));
    await lists.save(listOf('kept', 5, 'v', 'u'));
    await lists.save(listOf('new', (MAX_LIST_DAYS * DAY_MS) / 60_000 + 1, 'v', 'w'));
    assert.equal([(await lists.find('old'))?.key, (await lists.find('kept'))?.key], [undefined, 'kept']);
  });
}
