import * as assert from 'uvu/assert';
import { openApiDocument } from '../../../src/http/openapi/openapi-document.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { suite } from '../suite.ts';
import { answerCheck, type SeenAnswer } from './answer-check.ts';

const test = suite('check of answers against the API description');
const check = answerCheck(JSON.parse(JSON.stringify(openApiDocument(ROUTES))));

function seen(target: string, over: Partial<Omit<SeenAnswer, 'headers' | 'body'>> & Given = {}): SeenAnswer {
  const { headers = {}, json, text, ...rest } = over;
  const all = { 'x-request-id': 'r1', 'content-type': 'application/json', ...headers };
  return {
    method: 'GET',
    status: 200,
    ...rest,
    target,
    headers: new Map(Object.entries(all)),
    body: Buffer.from(text ?? (json === undefined ? '' : JSON.stringify(json))),
  };
}

interface Given {
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly text?: string;
}

const error = (error_code: string) => ({ detail: 'a reason', error_code, request_id: 'r1' });

test('names what differs from the API description', () => {
  const unauthorized = { status: 401, json: error('AUTHENTICATION_REQUIRED') };
  const limited = { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '4', 'x-ratelimit-reset': '9' };
  const cases: readonly (readonly [SeenAnswer, RegExp])[] = [
    [seen('/livez', { json: { status: 'dead' } }), /^\/status must/],
    [seen('/livez', { json: {} }), /^the body must have required properties status/],
    [seen('/livez', { text: '{' }), /not JSON/],
    [seen('/livez', { status: 201, json: { status: 'alive' } }), /status 201 is not documented/],
    [seen('/livez', { headers: { 'content-type': 'text/html' }, text: 'x' }), /media type "text\/html"/],
    [seen('/docs', { status: 308, text: 'x' }), /a body with the status 308/],
    [seen('/nope', { json: {} }), /status 200 where no route/],
    [seen('/nope', { status: 404, json: error('TEMPLATE_NOT_FOUND') }), /^\/error_code must/],
    [seen('/livez', { method: 'PATCH', status: 405, json: error('METHOD_NOT_ALLOWED') }), /without Allow/],
    [seen('/stats', unauthorized), /WWW-Authenticate is missing/],
    [seen('/stats', { status: 429, json: error('RATE_LIMIT_EXCEEDED') }), /429 without Retry-After/],
    [
      seen('/livez', { headers: limited, json: { status: 'alive' } }),
      /X-RateLimit headers that are not documented/,
    ],
    [
      seen('/openapi.json', { headers: { 'x-ratelimit-limit': '5' }, json: {} }),
      /of the X-RateLimit headers only limit/,
    ],
  ];
  for (const [answer, issue] of cases) assert.match(check(answer).join('; '), issue);
});

test('reports a missing request id', () => {
  const answer = seen('/livez', { json: { status: 'alive' } });
  assert.equal(check({ ...answer, headers: new Map([['content-type', 'application/json']]) }), [
    'the header X-Request-ID is missing',
  ]);
});

test.run();
