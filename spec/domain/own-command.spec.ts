import * as assert from 'uvu/assert';
import { ownCommand } from '../../src/domain/version.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('own command');

test('is what can be typed: by npx in a clone, by its name where it is installed', () => {
  const places: readonly (readonly [string, string])[] = [
    ['file:///home/ada/stagedoor/src/domain/version.ts', 'npx stagedoor db status'],
    ['file:///home/ada/stagedoor/dist/domain/own-command.js', 'npx stagedoor db status'],
    ['file:///home/ada/my-node_modules/src/domain/version.ts', 'npx stagedoor db status'],
    ['file:///usr/lib/node_modules/stagedoor/dist/domain/own-command.js', 'stagedoor db status'],
    ['file:///C:/a/node_modules/stagedoor/dist/domain/own-command.js', 'stagedoor db status'],
  ];
  for (const [module, line] of places) assert.is(ownCommand('db status', module), line);
});

test('is that of a clone here', () => {
  assert.is(ownCommand('config'), 'npx stagedoor config');
});

test.run();
