import * as assert from 'uvu/assert';
import type { Auth } from '../../src/auth/auth.ts';
import { ANONYMOUS, type Principal, type Scope } from '../../src/domain/account.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import type { InstanceInput } from '../../src/domain/instance.ts';
import { checkedCommand } from '../../src/http/routes/registration.ts';
import type { TemplateDefinition } from '../../src/templates/definition.ts';
import { anonymousAuth } from '../helpers/anonymous-auth.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a command that is registered');
const off = anonymousAuth();
const on: Auth = { ...off, isEnabled: true };
test.after(() => off.close());

const weather: TemplateDefinition = {
  ...{ id: 'weather', name: 'Weather', description: 'Tells it.', version: '1.0.0' },
  environment: { UNITS: 'metric' },
};
const who = (...scopes: Scope[]): Principal => ({ ...ANONYMOUS, kind: 'user', scopes: new Set(scopes) });
const local = { isLocal: true, origin: undefined };
const remote = { isLocal: false, origin: undefined };

interface Situation {
  readonly auth?: Auth;
  readonly principal?: Principal;
  readonly request?: { readonly isLocal: boolean; readonly origin: string | undefined };
  readonly template?: string;
}

/** The instance as it may be registered, or the code of the refusal. */
function check(instance: InstanceInput, situation: Situation = {}): InstanceInput | string {
  const { auth = on, principal = who('gateway:write'), request = remote, template = 'weather' } = situation;
  const services = {
    auth,
    allowedCommands: [
      ['serve', '--root', '*path'],
      ['npx', '-y', 'weather@1.0.0'],
    ],
    definitions: new Map([[weather.id, weather]]),
  };
  try {
    return checkedCommand({ template, instance, principal, request }, services);
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : String(thrown);
  }
}

test('is the only thing that is checked', () => {
  const endpoint = { endpoint: 'http://127.0.0.1:1', env_vars: { PATH: 'x' } };
  assert.is(check(endpoint), endpoint);
  assert.is(check(endpoint, { auth: off }), endpoint);
});

test('is forced by an admin only', () => {
  const wanted = { command: 'serve', args: ['--root', 'here'], force: true };
  assert.is(check(wanted), 'INSUFFICIENT_PERMISSIONS');
  assert.is(check(wanted, { principal: who('admin') }), wanted);
  assert.is(check(wanted, { auth: off, request: local }), wanted);
});

test('comes from this machine while authentication is off, and from no page', () => {
  const wanted = { command: 'anything at all' };
  assert.is(check(wanted, { auth: off, request: local }), wanted);
  assert.is(check(wanted, { auth: off, request: remote }), 'COMMAND_NOT_ALLOWED');
  const page = { isLocal: true, origin: 'http://localhost:8080' };
  assert.is(check(wanted, { auth: off, request: page }), 'COMMAND_NOT_ALLOWED');
});

test('is the business of an admin, from wherever', () => {
  const wanted = { command: 'anything', working_dir: '/', env_vars: { LD_PRELOAD: 'x' } };
  for (const request of [local, remote, { isLocal: false, origin: 'https://console.example' }]) {
    assert.is(check(wanted, { principal: who('admin'), request }), wanted);
  }
});

test('of anybody else is in the list, and is registered in the words that were checked', () => {
  const checked = { command: 'serve', args: ['--root', '/srv/two words'] };
  assert.equal(check({ command: "serve --root '/srv/two words'" }), checked);
  assert.equal(check(checked), checked);
  assert.equal(check({ ...checked, weight: 3, env_vars: { UNITS: 'x' } }), {
    ...{ ...checked, weight: 3, env_vars: { UNITS: 'x' } },
  });
});

const NOT_ALLOWED: readonly (readonly [what: string, instance: InstanceInput])[] = [
  ['another command', { command: 'sh -c x' }],
  ['the right words in one', { command: 'serve --root /srv', args: [] }],
  ['an option for a word', { command: 'serve --root --help' }],
  ['quotes that do not match', { command: "serve --root '/srv" }],
  ['an empty command', { command: ' ' }],
  ['a working directory', { command: 'npx -y weather@1.0.0', working_dir: '/srv' }],
  ['a variable that is not declared', { command: 'npx -y weather@1.0.0', env_vars: { OTHER: 'x' } }],
  [
    'a variable that changes the program',
    { command: 'npx -y weather@1.0.0', env_vars: { NODE_OPTIONS: 'x' } },
  ],
  ['a program behind an endpoint', { command: 'sh', endpoint: 'http://127.0.0.1:1' }],
];
for (const [what, instance] of NOT_ALLOWED) {
  test(`of anybody else is not ${what}`, () => {
    // Being on this machine shows nothing when callers have names.
    assert.is(check(instance, { request: local }), 'COMMAND_NOT_ALLOWED');
  });
}

test('may set no variable for a template that nobody has described', () => {
  const wanted = { command: 'npx -y weather@1.0.0', env_vars: { UNITS: 'x' } };
  assert.is(check(wanted, { template: 'unheard-of' }), 'COMMAND_NOT_ALLOWED');
  assert.not.type(check(wanted), 'string');
});

test.run();
