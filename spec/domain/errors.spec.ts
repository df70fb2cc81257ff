import * as assert from 'uvu/assert';
import { ERROR_STATUS } from '../../src/domain/error-codes.ts';
import * as errors from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('errors');

const { GatewayError } = errors;
const refused = { code: -32602, message: 'a must be a number' };
const cause = new Error('the cause');

/** Everything a reader of the error can see. */
function whole(error: errors.GatewayError) {
  const { code, status, delivered, message, facts } = error;
  return { code, status, delivered, message, facts };
}

test('has a status of failure for every code', () => {
  for (const [code, status] of Object.entries(ERROR_STATUS)) {
    assert.ok(status >= 400 && status <= 599, code);
  }
});

test('is an Error with a name, a code and the status of that code', () => {
  const error = new GatewayError('QUEUE_FULL', 'full');
  assert.instance(error, Error);
  assert.equal(
    [error.name, error.code, error.status, error.message],
    ['GatewayError', 'QUEUE_FULL', 429, 'full'],
  );
});

test('carries its cause, and no cause when there is none', () => {
  assert.is(new GatewayError('INTERNAL_ERROR', 'x', { cause }).cause, cause);
  assert.is(Object.hasOwn(new GatewayError('INTERNAL_ERROR', 'x'), 'cause'), false);
});

test('counts as not delivered before any backend was asked', () => {
  assert.is(errors.templateNotFound('weather').delivered, 'no');
});

for (const [fact, error, expected] of [
  ['no template', errors.templateNotFound('weather'), { code: 'TEMPLATE_NOT_FOUND', status: 404 }],
  ['no server', errors.serverNotFound('w-1'), { code: 'SERVER_NOT_FOUND', status: 404 }],
  ['no tool', errors.toolNotFound('add', 'weather'), { code: 'TOOL_NOT_FOUND', status: 404 }],
  ['no resource', errors.resourceNotFound('file:///a'), { code: 'RESOURCE_NOT_FOUND', status: 404 }],
  ['no prompt', errors.promptNotFound('hello'), { code: 'PROMPT_NOT_FOUND', status: 404 }],
  ['no route', errors.routeNotFound('GET', '/nowhere'), { code: 'NOT_FOUND', status: 404 }],
  ['broken JSON', errors.malformedJson('it ends early'), { code: 'MALFORMED_JSON', status: 400 }],
  ['a large body', errors.payloadTooLarge(10), { code: 'PAYLOAD_TOO_LARGE', status: 413 }],
  [
    'a wrong type',
    errors.unsupportedMediaType('text/plain'),
    { code: 'UNSUPPORTED_MEDIA_TYPE', status: 415 },
  ],
  ['a duplicate', errors.duplicateServer('w-1'), { code: 'DUPLICATE_SERVER', status: 400 }],
  ['a missing setting', errors.configIncomplete('no endpoint'), { code: 'CONFIG_INCOMPLETE', status: 400 }],
  ['a denied endpoint', errors.endpointNotAllowed('denied'), { code: 'ENDPOINT_NOT_ALLOWED', status: 400 }],
  ['a denied command', errors.commandNotAllowed('denied'), { code: 'COMMAND_NOT_ALLOWED', status: 403 }],
  ['a denied origin', errors.originNotAllowed('denied'), { code: 'ORIGIN_NOT_ALLOWED', status: 403 }],
] as const) {
  test(`answers ${fact} with ${expected.status} ${expected.code}`, () => {
    const { code, status, delivered } = error;
    assert.equal({ code, status, delivered }, { ...expected, delivered: 'no' });
  });
}

test('names in its text what the caller asked for', () => {
  assert.equal(
    [
      errors.templateNotFound('weather').message,
      errors.toolNotFound('add', 'weather').message,
      errors.resourceNotFound('file:///a').message,
      errors.payloadTooLarge(4096).message,
    ],
    [
      'No template named "weather" is registered.',
      '"weather" has no tool named "add".',
      'No resource "file:///a".',
      'The request body is larger than 4096 bytes.',
    ],
  );
});

test('says which methods a path answers', () => {
  assert.equal(whole(errors.methodNotAllowed('PUT', '/health', ['GET', 'HEAD'])), {
    code: 'METHOD_NOT_ALLOWED',
    status: 405,
    delivered: 'no',
    message: '/health does not answer PUT; it answers GET, HEAD.',
    facts: { allow: ['GET', 'HEAD'] },
  });
});

test('keeps the findings about bad input', () => {
  const items = [{ loc: ['body', 'weight'], msg: 'too small', type: 'greater_than_equal' }];
  assert.equal(whole(errors.validationFailed(items)), {
    code: 'VALIDATION_ERROR',
    status: 422,
    delivered: 'no',
    message: 'The request is not valid: weight: too small.',
    facts: { items, plainMessage: 'The request is not valid.' },
  });
  const several = errors.validationFailed([{ loc: ['body'], msg: 'no object', type: 'dict_type' }, ...items]);
  assert.is(several.message, 'The request is not valid: no object (and 1 more).');
  const options = errors.validationFailed(
    [{ loc: ['options', 'graceMs'], msg: 'expected x', type: 'value_error' }],
    'This',
  );
  assert.is(options.message, 'This is not valid: graceMs: expected x.');
});

test('keeps what the backend said, and that it was delivered', () => {
  for (const error of [
    errors.resourceNotFound('file:///a', refused),
    errors.promptNotFound('hello', refused),
    errors.invalidToolArguments('add', refused),
    errors.toolExecutionFailed('add', { backendError: refused }),
  ]) {
    assert.equal(error.facts, { delivered: 'yes', backendError: refused });
  }
});

test('answers refused arguments with 400 and the words of the backend', () => {
  const { status, code, message } = errors.invalidToolArguments('add', refused);
  assert.equal(
    [status, code, message],
    [400, 'INVALID_TOOL_ARGUMENTS', '"add" refused its arguments: a must be a number'],
  );
});

test('tells a failed tool with an error from one with an error result', () => {
  const result = { isError: true, content: [] };
  assert.is(
    errors.toolExecutionFailed('add', { backendError: refused }).message,
    '"add" failed: a must be a number',
  );
  assert.equal(whole(errors.toolExecutionFailed('add', { result })), {
    code: 'TOOL_EXECUTION_FAILED',
    status: 500,
    delivered: 'yes',
    message: '"add" failed with an error result',
    facts: { delivered: 'yes', result },
  });
});

test('says when to try again when nothing was delivered', () => {
  for (const error of [
    errors.noHealthyInstance('weather'),
    errors.backendUnavailable('connection refused', { delivered: 'no' }),
    errors.queueFull('weather'),
    errors.shuttingDown(),
  ]) {
    assert.is(error.delivered, 'no');
    assert.ok((error.facts.retryAfterSeconds ?? 0) > 0, error.code);
  }
});

test('does not invite to try again when something may have been delivered', () => {
  for (const error of [
    errors.backendUnavailable('exited with code 7', { delivered: 'unknown' }),
    errors.backendUnavailable('sent no JSON', { delivered: 'yes' }),
    errors.backendTimeout(30_000),
  ]) {
    assert.is(error.facts.retryAfterSeconds, undefined, error.message);
  }
});

test('keeps why a backend is unavailable', () => {
  assert.equal(
    whole(errors.backendUnavailable('connection reset', { delivered: 'unknown', cause, suspicious: true })),
    {
      code: 'BACKEND_UNAVAILABLE',
      status: 503,
      delivered: 'unknown',
      message: 'The backend is unavailable: connection reset.',
      facts: {
        delivered: 'unknown',
        cause,
        suspicious: true,
        reason: 'connection reset',
        plainMessage: 'The backend is unavailable.',
      },
    },
  );
});

test('suspects an instance that did not answer in time', () => {
  assert.equal(whole(errors.backendTimeout(1_500)), {
    code: 'BACKEND_TIMEOUT',
    status: 503,
    delivered: 'unknown',
    message: 'The backend did not answer within 1.5 s.',
    facts: { delivered: 'unknown', suspicious: true, reason: 'it did not answer within 1.5 s' },
  });
});

test('lets a call be made again that ran out of time before it was sent', () => {
  const { delivered, facts } = errors.backendTimeout(1_500, 'no');
  assert.equal([delivered, facts.retryAfterSeconds], ['no', 1]);
});

test('says of single instances why none is healthy', () => {
  const { message } = errors.noHealthyInstance('files', 'a is starting; b: connection refused');
  assert.is(message, 'No instance of "files" is healthy right now: a is starting; b: connection refused.');
  assert.is(errors.noHealthyInstance('files').message, 'No instance of "files" is healthy right now.');
});

test('tells nothing of an internal error but keeps its cause', () => {
  const error = errors.internalError(cause);
  assert.is(error.message, 'Something went wrong inside the gateway.');
  assert.is(error.cause, cause);
});

test('makes a GatewayError of anything thrown and leaves one that is one', () => {
  const known = errors.queueFull('weather');
  assert.is(errors.asGatewayError(known), known);
  for (const thrown of [cause, 'text', undefined, null]) {
    const error = errors.asGatewayError(thrown);
    assert.is(error.code, 'INTERNAL_ERROR');
    assert.is(error.cause, thrown === undefined ? undefined : thrown);
  }
});

test('tells an error by its code, and nothing else by something that looks like one', () => {
  const full = errors.queueFull('weather');
  const twin = Object.assign(new Error(full.message), { code: 'QUEUE_FULL' });
  assert.equal(
    [full, twin, cause, undefined, 'QUEUE_FULL'].map((thrown) => errors.hasCode(thrown, 'QUEUE_FULL')),
    [true, false, false, false, false],
  );
  assert.is(errors.hasCode(full, 'BACKEND_TIMEOUT'), false);
});

test.run();
