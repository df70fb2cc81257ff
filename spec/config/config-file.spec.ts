// What gateway.yaml may hold, and what is said about a key that nobody knows.

import * as assert from 'uvu/assert';
import { ConfigError, type Noting } from '../../src/config/config-error.ts';
import { readConfigFile } from '../../src/config/sources.ts';
import { load, refusal } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('configuration file');

test('names the nearest key for an unknown one in gateway.yaml', () => {
  assert.is(refusal({ yaml: 'prot: 80' }), 'gateway.yaml:1: unknown key prot; the nearest is port');
  assert.is(
    refusal({ yaml: 'load_balancer:\n  strtegy: random' }),
    'gateway.yaml:2: unknown key load_balancer.strtegy; the nearest is load_balancer.strategy',
  );
  assert.match(
    refusal({ yaml: 'load_balancer: random' }),
    'load_balancer is a section of load_balancer.strategy',
  );
});

test('says where gateway.yaml is not YAML, and takes an empty one or an empty section as nothing', () => {
  assert.match(refusal({ yaml: 'port: [1' }), /^gateway\.yaml: .*line 1/);
  assert.match(refusal({ yaml: '- port' }), 'gateway.yaml: expected settings');
  assert.match(refusal({ yaml: 'port: 1\nport: 2' }), 'gateway.yaml: ');
  assert.is(load({ yaml: '# nothing\n' }).portsDefaulted, true);
  assert.is(load({ yaml: 'auth:\n  # enabled: false\n' }).authEnabled, true);
});

const keys = ['port', 'auth.enabled', 'auth.secret_key', 'http.a.b'];
/** Lets the first fault through. */
const note: Noting = (work) => work();

test('gives values by their dotted key, nested or not', () => {
  const values = readConfigFile('port: 1\nauth: { enabled: no }\nhttp.a.b: [1]\n', 'a.yaml', { keys, note });
  assert.equal(
    [...values],
    [
      ['port', { value: 1, place: 'a.yaml:1' }],
      ['auth.enabled', { value: 'no', place: 'a.yaml:2' }],
      ['http.a.b', { value: [1], place: 'a.yaml:3' }],
    ],
  );
});

test('refuses a key that is set in both ways', () => {
  assert.throws(
    () => readConfigFile('auth: { enabled: no }\nauth.enabled: yes\n', 'a.yaml', { keys, note }),
    /^a\.yaml:2: auth\.enabled is set twice$/,
  );
});

test('refuses a file that would explode or contain itself', () => {
  const bomb =
    'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nport: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]';
  assert.throws(() => readConfigFile(bomb, 'a.yaml', { keys, note }), /Excessive alias count/);
  assert.match(refusal({ yaml: 'port: &p [*p]' }), 'gateway.yaml:1, port: expected a port');
});

test('says all that is wrong, each with its line', () => {
  const faults = [
    'gateway.yaml:1: unknown key prot; the nearest is port',
    '--port: expected a port from 0 to 65535; found "x"',
    'gateway.yaml:3, load_balancer.timeout: expected seconds from 0.1 to 3600; found "30s"',
  ];
  const yaml = 'prot: 80\nload_balancer:\n  timeout: 30s\n';
  try {
    load({ yaml, flags: { port: 'x' } });
    throw new Error('nothing was refused');
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    assert.equal([thrown.message, ...thrown.others], faults);
  }
});

test.run();
