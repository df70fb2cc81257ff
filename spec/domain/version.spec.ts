// The version of the gateway, and the name of its command.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { ownCommand, VERSION } from '../../src/domain/version.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('version');

test('is the version of package.json', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  assert.is(VERSION, JSON.parse(text).version);
});

test('names the command with npx in a clone, and without where it is installed', () => {
  const places: readonly (readonly [string, string])[] = [
    ['file:///home/ada/stagedoor/src/domain/version.ts', 'npx stagedoor db status'],
    ['file:///home/ada/stagedoor/dist/domain/own-command.js', 'npx stagedoor db status'],
    ['file:///home/ada/my-node_modules/src/domain/version.ts', 'npx stagedoor db status'],
    ['file:///usr/lib/node_modules/stagedoor/dist/domain/own-command.js', 'stagedoor db status'],
    ['file:///C:/a/node_modules/stagedoor/dist/domain/own-command.js', 'stagedoor db status'],
  ];
  for (const [module, line] of places) assert.is(ownCommand('db status', module), line);
});

test.run();
