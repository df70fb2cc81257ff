import * as assert from 'uvu/assert';
import {
  LIBRARY_MODULES,
  loadAuthorizationServer,
} from '../../src/authorization-server/load-authorization-server.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('loading the authorization server');

test('takes a turn of the event loop for each part, so that calls go between', async () => {
  let turns = 0;
  const turn = async () => {
    turns += 1;
  };
  const { AuthorizationServer } = await loadAuthorizationServer({ turn });
  assert.type(AuthorizationServer, 'function');
  assert.ok(turns > LIBRARY_MODULES.length, `${turns} turns`);
});

test('knows parts that the installed library has', async () => {
  for (const part of LIBRARY_MODULES) assert.ok(Object.keys(await import(part)).length > 0, part);
});

test.run();
