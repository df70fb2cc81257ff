// The conformance tests for the settings of a Store.

import * as assert from 'uvu/assert';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function settingConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'settings: ');

  declare('ensure keeps the value that was written first', async ({ settings }) => {
    assert.is(await settings.read('secret'), undefined);
    assert.is(await settings.ensure('secret', 'first'), 'first');
    assert.is(await settings.ensure('secret', 'second'), 'first');
    assert.is(await settings.read('secret'), 'first');
    assert.is(await settings.read('Secret'), undefined);
    assert.is(await settings.ensure('other', ''), '');
    assert.is(await settings.read('other'), '');
  });

  declare('keeps any text', async ({ settings }) => {
    const text = `'"\\ \r\n 漢字 😀 ; -- ? :x $1 ${'x'.repeat(9_000)}`;
    await settings.ensure('text', text);
    assert.is(await settings.read('text'), text);
  });

  declare('all writers get the same value when many write at once', async ({ settings }) => {
    const values = await Promise.all(
      Array.from({ length: 8 }, (_, index) => settings.ensure('secret', `value-${index}`)),
    );
    assert.is(new Set(values).size, 1);
    assert.is(await settings.read('secret'), values[0]);
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
