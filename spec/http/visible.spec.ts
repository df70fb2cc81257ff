import * as assert from 'uvu/assert';
import { ANONYMOUS, NO_PRINCIPAL, type Principal } from '../../src/domain/account.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { requireTemplate, visibleServer, visibleServers, visibleTemplates } from '../../src/http/visible.ts';
import { startApp } from '../helpers/http-app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('what a principal may see');
const started = startApp();
test.before(async () => {
  const app = await started;
  await app.serve('alpha', 'one');
  await app.serve('beta', 'two');
});
test.after(async () => (await started).close());

const only = (...templates: string[]): Principal => ({ ...ANONYMOUS, templates: new Set(templates) });
const codeOf = (ask: () => unknown): string => {
  try {
    ask();
    return 'nothing';
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : String(thrown);
  }
};

test('is everything, some templates, or nothing', async () => {
  const { gateway } = await started;
  for (const [principal, templates, servers] of [
    [ANONYMOUS, ['alpha', 'beta'], ['one', 'two']],
    [only('beta', 'unheard-of'), ['beta'], ['two']],
    [only(), [], []],
    [NO_PRINCIPAL, [], []],
  ] as const) {
    assert.equal(visibleTemplates(gateway, principal), templates);
    assert.equal(
      visibleServers(gateway, principal).map(({ definition }) => definition.serverId),
      servers,
    );
  }
});

test('does not tell an instance of others from one that is not there', async () => {
  const { gateway } = await started;
  assert.is(visibleServer(gateway, only('beta'), 'two').definition.template, 'beta');
  const refusals = ['one', 'none'].map((id) => {
    try {
      return visibleServer(gateway, only('beta'), id);
    } catch (thrown) {
      return thrown instanceof GatewayError
        ? [thrown.code, thrown.message.replace(id, '*'), thrown.facts]
        : [];
    }
  });
  assert.equal(refusals[0], refusals[1]);
  assert.equal(refusals[0], ['SERVER_NOT_FOUND', 'No instance "*" is registered.', {}]);
});

test('does not repeat an id without end', async () => {
  const { gateway } = await started;
  const ask = () => visibleServer(gateway, ANONYMOUS, 'x'.repeat(100_000));
  assert.throws(ask, (error: Error) => error.message.length < 300);
});

test('is asked about a template that a body names', () => {
  assert.is(
    codeOf(() => requireTemplate(only('beta'), 'alpha')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => requireTemplate(only('beta'), 'beta')),
    'nothing',
  );
  assert.is(
    codeOf(() => requireTemplate(ANONYMOUS, 'alpha')),
    'nothing',
  );
});

test.run();
