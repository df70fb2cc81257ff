import * as assert from 'uvu/assert';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('request ids');
const started = startMiddlewares((context) => respond(context, json(200, { id: context.state.requestId })));
test.after(async () => (await started).close());

const idFor = async (sent?: string) => {
  const headers: Record<string, string> = sent === undefined ? {} : { 'x-request-id': sent };
  const answer = await (await started).ask('GET', '/', { headers });
  assert.is(answer.headers.get('x-request-id'), answer.body.id);
  return String(answer.body.id);
};

test('keeps a sane id of the client', async () => {
  for (const id of ['a', 'A.b_c-9', 'x'.repeat(128)]) assert.is(await idFor(id), id);
});

test('replaces anything else', async () => {
  for (const id of ['', 'x'.repeat(129), 'a b', 'a,b', '<script>', 'ümlaut']) {
    assert.match(await idFor(id), /^[0-9a-f-]{36}$/);
  }
});

test('gives each request its own', async () => {
  assert.is.not(await idFor(), await idFor());
});

test.run();
