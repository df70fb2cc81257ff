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

test('names the command that finds this program, and never one that npx would download', () => {
  const clone = '/home/ada/my stagedoor';
  const project = '/home/ada/app/node_modules/stagedoor';
  const places: readonly (readonly [module: string, folder: string, line: string])[] = [
    [`${clone}/src/domain/version.ts`, clone, 'npx stagedoor db status'],
    [`${clone}/dist/domain/version.js`, `${clone}/docs`, 'npx stagedoor db status'],
    [`${clone}/src/domain/version.ts`, '/srv', `node '${clone}/bin/stagedoor.mjs' db status`],
    [`${clone}/src/domain/version.ts`, `${clone}2`, `node '${clone}/bin/stagedoor.mjs' db status`],
    [`${project}/dist/domain/version.js`, '/home/ada/app', 'npx stagedoor db status'],
    [`${project}/dist/domain/version.js`, '/srv', `node ${project}/bin/stagedoor.mjs db status`],
    ['/usr/lib/node_modules/stagedoor/dist/domain/version.js', '/srv', 'stagedoor db status'],
    ['/C:/app/node_modules/stagedoor/dist/domain/version.js', 'C:\\app', 'npx stagedoor db status'],
  ];
  for (const [path, folder, line] of places) {
    const module = new URL(path, 'file:///').href;
    assert.is(ownCommand('db status', { module, folder }), line);
  }
});

test.run();
