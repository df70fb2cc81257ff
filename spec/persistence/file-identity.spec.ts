// A path leads to the same file, to another one, or to none.

import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { fileIdentity } from '../../src/persistence/orm-session.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('file identity');

test('knows the file again, whatever is written into it, and no other under its name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-identity-'));
  const [path, aside] = [join(folder, 'a'), join(folder, 'b')];
  writeFileSync(path, 'one');
  const isInPlace = fileIdentity(path);
  writeFileSync(path, 'another text');
  assert.is(isInPlace(), true);
  renameSync(path, aside);
  assert.is(isInPlace(), false);
  writeFileSync(path, 'one');
  assert.is(isInPlace(), false);
  renameSync(aside, path);
  assert.is(isInPlace(), true);
  rmSync(folder, { recursive: true });
  assert.is(isInPlace(), false);
});

test.run();
