import * as assert from 'uvu/assert';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { unknownVariables } from '../../src/config/sources.ts';
import { load } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('unknown variables');

test('are named with the nearest setting, in the warnings of the configuration', () => {
  const { warnings } = load({ env: { MCP_GATEWAY_LOGLEVEL: 'debug', MCP_GATEWAY_LOG_LEVEL: 'info' } });
  assert.equal(warnings, [
    'MCP_GATEWAY_LOGLEVEL has no effect: there is no such setting, the nearest is MCP_GATEWAY_LOG_LEVEL',
  ]);
});

test('are none of these: settings, files of secrets, what is empty, service links, the other prefix', () => {
  const known = {
    MCP_GATEWAY_PORT: '1',
    MCP_GATEWAY_SECRET_KEY_FILE: '/run/secret',
    MCP_GATEWAY_NOTHING: '',
    MCP_GATEWAY_SERVICE_HOST: '10.0.0.1',
    MCP_GATEWAY_SERVICE_PORT: '80',
    MCP_GATEWAY_SERVICE_PORT_HTTP: '80',
    MCP_GATEWAY_PORT_80_TCP_ADDR: '10.0.0.1',
    GATEWAY_SOMETHING: 'x',
    PATH: '/bin',
  };
  assert.equal(unknownVariables(known, ALL_SETTINGS), []);
});

test('are near misses only under the prefix that others use, too', () => {
  const environment = {
    GATEWAY_API_KEY_LIMT: '3',
    GATEWAY_PROT: '1',
    GATEWAY_SECRET_KEY_FLIE: '/run/secret',
    GATEWAY_DATABASE_URL: 'memory://',
    GATEWAY_ADMIN_PASSWORD_FILE: '/run/secret',
    GATEWAY_ALLOWED_HOST: '',
    GATEWAY_INTERFACE: 'CGI/1.1',
    GATEWAY_TIMEOUT: '5',
    GATEWAY_URL: 'http://a',
    GATEWAY_SERVICE_HOST: '10.0.0.1',
    GATEWAY_SERVICE_PORT: '80',
    GATEWAY_PORT_80_TCP_PORT: '80',
    GATEWAY_PORT_80_TCP: 'tcp://10.0.0.1:80',
  };
  const line = (name: string, meant: string) =>
    `GATEWAY_${name} has no effect: there is no such setting; did you mean GATEWAY_${meant}?`;
  assert.equal(unknownVariables(environment, ALL_SETTINGS), [
    line('API_KEY_LIMT', 'API_KEY_LIMIT'),
    line('PROT', 'PORT'),
    line('SECRET_KEY_FLIE', 'SECRET_KEY_FILE'),
  ]);
});

test('do not have a file when they are no secret', () => {
  assert.is(unknownVariables({ MCP_GATEWAY_PORT_FILE: 'x' }, ALL_SETTINGS).length, 1);
});

test.run();
