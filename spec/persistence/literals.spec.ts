// Texts that Oracle or SQL Server would read otherwise than they were written are cut where it happens, and only there.

import * as assert from 'uvu/assert';
import {
  correctLiterals,
  withoutContinuedLines,
  withoutVariables,
} from '../../src/persistence/mikro-orm-patches.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('literals');

test('cuts a text for Oracle between a dollar and a digit', () => {
  const hash = `'$2b$12$abc'`;
  assert.is(withoutVariables(hash), `('$' || '2b$' || '12$abc')`);
  // What the driver does to every statement.
  assert.is(withoutVariables(hash).replace(/\$(\d+)/g, ':0'), withoutVariables(hash));
  assert.is(withoutVariables(`'$1$2'`), `('$' || '1$' || '2')`);
});

test('cuts a text for SQL Server between a backslash and the end of its line', () => {
  assert.is(withoutContinuedLines(`N'C:\\\nD:\\\r\nE'`), `(N'C:\\' + N'\nD:\\' + N'\r\nE')`);
  assert.is(withoutContinuedLines(`'a\\\\\n'`), `('a\\\\' + '\n')`);
});

test('leaves every other text as it is', () => {
  for (const literal of [`''`, `'$'`, `'$$ $x 1'`, `N'C:\\temp\\'`, `'line\nbreak'`, `'it''s'`, `'\\r\\n'`]) {
    assert.is(withoutVariables(literal), literal);
    assert.is(withoutContinuedLines(literal), literal);
  }
});

test('corrects what a platform writes for texts, and nothing else', () => {
  const platform = {
    before: 'N',
    escape(value: unknown): string {
      return typeof value === 'string' ? `${this.before}'${value}'` : String(value);
    },
  };
  correctLiterals(platform, (literal) => `<${literal}>`);
  assert.equal([platform.escape('a'), platform.escape(1), platform.escape(null)], [`<N'a'>`, '1', 'null']);
});

test.run();
