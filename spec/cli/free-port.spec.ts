import { once } from 'node:events';
import { createServer } from 'node:net';
import * as assert from 'uvu/assert';
import { freePort } from '../../src/cli/demo-servers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('free port');

test('finds a port that can be listened on', async () => {
  const port = await freePort();
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
  assert.ok(port > 0);
});

test.run();
