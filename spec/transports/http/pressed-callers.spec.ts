// Calls at a server whose incomplete answers hold nearly all of their memory: only those of callers who wait for such answers are refused.

import * as assert from 'uvu/assert';
import { ANSWERS_HOLD_TOO_MUCH } from '../../../src/domain/errors/backend-errors.ts';
import { HeldBytes } from '../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { type Answers, refused, result, serving } from '../scripted-server.ts';
import { withRawTransport } from './open-http.ts';

const test = suite('http calls while memory is short');

const done = result({ content: [{ type: 'text', text: 'done' }] });
const ANSWERS: Answers = {
  'server/discover': refused(),
  initialize: result({ protocolVersion: '2025-11-25' }),
  'tools/call': (response, asked) => {
    if (asked.params?.name === 'short') return done(response, asked);
    return response.writeHead(200, { 'content-type': 'application/json' }).write('x'.repeat(80_000));
  },
};

test('a caller who waits for no large answer is served', async () => {
  const held = new HeldBytes({ totalBytes: 400_000, ownerBytes: 100_000 }, systemClock.now);
  const answers = held.of('a');
  await withRawTransport(
    serving(ANSWERS),
    async (transport) => {
      const call = (name: string, callerId?: string) =>
        see(transport.exchange({ ...callTool(name, {}), callerId }));
      const large = transport.exchange({ ...callTool('large', {}), callerId: 'user:1' }).subscribe();
      await until(() => held.bytes > 80_000);
      assert.equal((await call('short', 'user:2')).events.map(textOf), ['done']);
      for (const callerId of ['user:1', undefined]) {
        const { end } = await call('short', callerId);
        assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
        assert.match(String(end), ANSWERS_HOLD_TOO_MUCH);
      }
      large.unsubscribe();
    },
    { answers },
  );
});

test.run();
