// Callers from the first moment on: until the accounts exist every route but /livez answers 503 with Retry-After, and after
// /readyz has answered 200 once, a login with the right password succeeds.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Answer, caller } from '../../helpers/clients/caller.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: early callers', { timeoutMs: 60_000 });
const password = 'correct horse';

test('requests during a start get 503 with Retry-After, never 401, and all succeed once /readyz answers 200', async () => {
  const port = await freePort();
  const gateway = new Program(['gateway', 'start', '--port', String(port), '--host', '127.0.0.1'], {
    env: {
      GATEWAY_AUTH_ENABLED: 'true',
      GATEWAY_ADMIN_PASSWORD: password,
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
    },
  });
  try {
    const anybody = caller(`http://127.0.0.1:${port}`);
    const questions = {
      livez: 'GET /livez',
      readyz: 'GET /readyz',
      health: 'GET /health',
      gatewayHealth: 'GET /gateway/health',
      login: 'POST /auth/login',
    } as const;
    const ask = async (question: string): Promise<Answer | undefined> => {
      const body = question.startsWith('POST') ? { username: 'admin', password } : undefined;
      return anybody(question, body).catch((error: unknown) => {
        // Nothing listens yet.
        if (error instanceof TypeError) return undefined;
        throw error;
      });
    };
    let isReady = false;
    const poll = async (question: string): Promise<readonly Answer[]> => {
      const answers: Answer[] = [];
      for (;;) {
        const wasReady = isReady;
        const answer = await ask(question);
        if (answer !== undefined) {
          answers.push(answer);
          if (question === questions.readyz && answer.status === 200) isReady = true;
          if (wasReady) {
            assert.is(answer.status, 200, `${question} after /readyz: ${JSON.stringify(answer.body)}`);
            return answers;
          }
        }
        await delay(2);
      }
    };
    const [lives, ...others] = await Promise.all(Object.values(questions).map(poll));
    assert.equal(new Set(lives?.map(({ status }) => status)), new Set([200]));
    const answers = others.flat();
    const found = answers.filter(({ status }) => status !== 200 && status !== 503);
    assert.equal(found, []);
    const early = answers.filter(({ status }) => status === 503);
    assert.ok(early.length > 0, 'somebody was early');
    assert.equal(new Set(early.map(({ headers }) => headers.get('retry-after'))), new Set(['1']));
    gateway.signal('SIGTERM');
    assert.equal(await gateway.end(), { code: 0, signal: null });
  } finally {
    await gateway.remove();
  }
});

test.run();
