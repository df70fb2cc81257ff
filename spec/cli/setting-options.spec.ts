import * as assert from 'uvu/assert';
import { CommandInput, type OptionValue } from '../../src/cli/command.ts';
import { UsageError } from '../../src/cli/failures.ts';
import { readSettings, SETTING_OPTIONS } from '../../src/cli/setting-options.ts';
import { suite } from '../helpers/suite.ts';
import { recordingTerminal } from './recording-terminal.ts';

const test = suite('setting options');

test('offers every setting that has a flag, and both forms of a switch', () => {
  const shown = SETTING_OPTIONS.map(({ flags }) => flags.replace(/ .*/, ''));
  const wanted = [
    '--host',
    '--port',
    '--config',
    '--log-level',
    '--auth',
    '--no-auth',
    '--database',
    '--registry',
  ];
  for (const flag of wanted) assert.ok(shown.includes(flag), flag);
  assert.not.ok(shown.includes('--secret-key'));
});

test('names what each option takes', () => {
  const flags = SETTING_OPTIONS.map((option) => option.flags);
  const wanted = ['--port <port>', '--health-interval <seconds>', '--host <address>', '--log-level <word>'];
  const others = [
    '--database <url>',
    '--node-id <name>',
    '--user-limit <number>',
    '--token-minutes <minutes>',
  ];
  for (const each of [...wanted, ...others, '--config <file>', '--cors-origins <list>'])
    assert.ok(flags.includes(each), each);
  assert.equal(
    flags.filter((each) => each.endsWith('<value>')),
    [],
  );
});

test('reads them into a configuration', () => {
  const config = read({ port: '9000', 'log-level': 'warn', registry: 'a.json' });
  const { port } = config.listeners[0] ?? {};
  assert.equal([port, config.logLevel, config.registryFile], [9000, 'warn', '/folder/a.json']);
});

test('lets an option win over what the caller forces, and that over the environment', () => {
  const env = { GATEWAY_HOST: '0.0.0.0', MCP_GATEWAY_HOST: '0.0.0.0' };
  assert.is(read({}, { host: '127.0.0.2' }, env).listeners[0]?.host, '127.0.0.2');
  assert.is(read({ host: '127.0.0.3' }, { host: '127.0.0.2' }, env).listeners[0]?.host, '127.0.0.3');
});

test('takes both forms of a switch, whatever the environment says', () => {
  assert.is(read({}).authEnabled, true);
  assert.is(read({ auth: false }).authEnabled, false);
  assert.is(read({ auth: true }, {}, { GATEWAY_AUTH_ENABLED: 'false' }).authEnabled, true);
});

test('refuses a password on the command line and says where it belongs', () => {
  const refusal = isUsageError(/^--database: .* GATEWAY_DATABASE_URL$/);
  assert.throws(() => read({ database: 'postgresql://me:planted@127.0.0.1/db' }), refusal);
  const { databaseUrl } = read({}, {}, { GATEWAY_DATABASE_URL: 'postgresql://me:planted@127.0.0.1/db' });
  assert.is(databaseUrl, 'postgresql://me:planted@127.0.0.1/db');
});

test('turns what is wrong with a setting into a usage error', () => {
  assert.throws(() => read({ port: 'x' }), isUsageError(/^--port: expected a port/));
  assert.throws(
    () => read({ registry: 'a', 'registry-file': 'b' }),
    isUsageError(/cannot be combined with --registry-file/),
  );
});

test.run();

function read(options: Record<string, OptionValue>, forced = {}, env: Record<string, string> = {}) {
  const input = new CommandInput([], new Map(Object.entries(options)));
  return readSettings(input, recordingTerminal({ env, folder: '/folder' }), forced);
}

function isUsageError(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof UsageError && message.test(error.message);
}
