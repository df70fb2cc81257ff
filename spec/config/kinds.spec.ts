// How values are read from text and from YAML, and which are refused.

import { resolve } from 'node:path';
import * as assert from 'uvu/assert';
import {
  boolean,
  choice,
  hostHeader,
  hostName,
  integer,
  type Kind,
  list,
  network,
  origin,
  originOrAll,
  path,
  seconds,
  text,
} from '../../src/config/kinds.ts';
import { cwd, load, refusal } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('kinds of values');

test('accepts numbers at their bounds and refuses what lies outside', () => {
  const bounds: [string, string[], string[]][] = [
    ['health-interval', ['1', '3600'], ['0', '0.9', '3600.1', '-1', '1e3', ' 1', '']],
    ['call-timeout', ['0.1', '3600'], ['0', '0.09', '3601']],
    ['max-retries', ['0', '10'], ['11', '-1', '0x1']],
    ['grace-seconds', ['0', '600'], ['601']],
  ];
  for (const [flag, good, bad] of bounds) {
    for (const value of good) load({ flags: { [flag]: value } });
    for (const value of bad) assert.match(refusal({ flags: { [flag]: value } }), `--${flag}: expected`);
  }
});

test('reads lists from text and from YAML, and `none` as empty', () => {
  const config = load({
    flags: { 'allowed-hosts': 'Gateway.example.com,::1,10.0.0.1:8080', 'denied-networks': 'none' },
    env: { GATEWAY_ALLOWED_ORIGINS: 'vscode-webview://abc' },
    yaml: 'trusted_proxies: [10.0.0.0/8, "fd00::/8", 192.0.2.1]',
  });
  assert.equal(config.allowedHosts, ['gateway.example.com', '[::1]', '10.0.0.1:8080']);
  assert.equal(config.allowedOrigins, ['vscode-webview://abc']);
  assert.equal(config.deniedNetworks, []);
  assert.equal(config.trustedProxies, ['10.0.0.0/8', 'fd00::/8', '192.0.2.1/32']);
});

test('reads what is of its kind and nothing else', () => {
  const cases: [Kind<unknown>, [unknown, unknown][], unknown[]][] = [
    [text('a text'), [['x', 'x']], ['', 7, null, true, ['x']]],
    [
      boolean,
      [
        [true, true],
        ['YES', true],
        ['on', true],
        ['1', true],
        [false, false],
        ['no', false],
      ],
      ['', 'maybe', 1, null, [true]],
    ],
    [
      integer(1, 5),
      [
        ['5', 5],
        [1, 1],
      ],
      ['6', 0, '1.5', '+1', '0x1', '1e0', Number.NaN, '5 ', null, [1]],
    ],
    [
      seconds(0.1, 5),
      [
        ['0.25', 250],
        [5, 5_000],
      ],
      ['.5', '5.', '5s', '5.001', Number.POSITIVE_INFINITY, true],
    ],
    [
      choice(['a', 'b'], { c: 'b' }),
      [
        ['A', 'a'],
        ['c', 'b'],
      ],
      ['d', '', 'constructor', ['a'], true],
    ],
    [
      hostName,
      [
        ['localhost', 'localhost'],
        ['0.0.0.0', '0.0.0.0'],
        ['[::1]', '::1'],
        ['my_host.a', 'my_host.a'],
      ],
      ['', 'h:80', 'http://h', '*', 'a b', '-h', 7],
    ],
    [
      hostHeader,
      [
        ['H.example', 'h.example'],
        ['h:80', 'h:80'],
        ['::1', '[::1]'],
        ['[::1]:80', '[::1]:80'],
      ],
      ['', '*', 'http://h', 'h/', 'h:', 8080],
    ],
    [
      origin,
      [
        ['https://a.example/', 'https://a.example'],
        ['HTTP://A.example:80', 'http://a.example'],
        ['chrome-extension://abc', 'chrome-extension://abc'],
      ],
      ['*', 'null', 'a.example', 'https://', 'https://a/b', 'https://u@a', 7],
    ],
    [
      originOrAll,
      [
        ['*', '*'],
        ['http://a', 'http://a'],
      ],
      ['**', 'a'],
    ],
    [
      network,
      [
        ['10.0.0.0/08', '10.0.0.0/8'],
        ['::1', '::1/128'],
      ],
      ['10.0.0.0/33', '10.0.0', 7],
    ],
    [
      list(integer(1, 5)),
      [
        ['1, 2', [1, 2]],
        [
          [1, '2'],
          [1, 2],
        ],
        ['none', []],
        [[], []],
      ],
      ['', '1,', '1,9', 1, { a: 1 }, null],
    ],
  ];
  for (const [kind, good, bad] of cases) {
    for (const [raw, value] of good) assert.equal(kind.read(raw, cwd), value, `${kind.type}: ${raw}`);
    for (const raw of bad) assert.is(kind.read(raw, cwd), undefined, `${kind.type}: ${raw}`);
  }
});

test('shows values the way it reads them', () => {
  const values: [Kind<unknown>, unknown][] = [
    [seconds(0, 600), 2_500],
    [boolean, false],
    [list(network), ['10.0.0.0/8', '::1/128']],
    [list(network), []],
    [path, resolve(cwd, 'a')],
  ];
  for (const [kind, value] of values) assert.equal(kind.read(kind.show(value), '/elsewhere'), value);
  assert.is(path.show(undefined), 'none');
});

test.run();
