// The conformance tests for the settings of a Store.

import * as assert from 'uvu/assert';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function settingConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'settings: ');

  declare('keeps any text under its exact name', async ({ settings }) => {
    const text = `'"\\ \r\n 漢字 😀 ; -- ? :x $1 ${'x'.repeat(9_000)}`;
    for (const [name, value] of Object.entries({ text, empty: '' })) {
      assert.is(await settings.exchange(name, undefined, value), true);
      assert.is(await settings.read(name), value);
    }
    assert.is(await settings.read('Text'), undefined);
  });

  declare('exchanges a value for another one only if it is the present one', async ({ settings }) => {
    const steps: readonly (readonly [string | undefined, string | undefined, boolean])[] = [
      ['wrong', 'x', false],
      [undefined, 'one', true],
      [undefined, 'x', false],
      ['wrong', 'x', false],
      ['one', 'two', true],
      ['one', undefined, false],
      ['two', undefined, true],
      ['two', undefined, false],
    ];
    for (const [before, after, isDone] of steps)
      assert.is(await settings.exchange('name', before, after), isDone, `${before} -> ${after}`);
    assert.is(await settings.read('name'), undefined);
  });

  declare('touches a setting without a change', async ({ settings }) => {
    await settings.exchange('name', undefined, 'one');
    await settings.touch('name');
    await settings.touch('unknown');
    assert.equal([await settings.read('name'), await settings.read('unknown')], ['one', undefined]);
  });

  declare('one of many exchanges of the same value succeeds', async ({ settings }) => {
    for (const before of [undefined, 'first']) {
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          settings.exchange('name', before, before === undefined ? 'first' : `second-${index}`),
        ),
      );
      assert.is(outcomes.filter((isDone) => isDone).length, 1);
    }
    assert.match(String(await settings.read('name')), /^second-\d$/);
  });
}
