// How values are parsed from text and from YAML, and which are refused.

import * as assert from 'uvu/assert';
import {
  boolean,
  choice,
  commandPatterns,
  commaSeparated,
  hostHeader,
  hostName,
  integerWithin,
  network,
  origin,
  originOrAll,
  type SettingType,
  seconds,
  secretKeys,
  secretText,
  url,
} from '../../src/config/setting-types.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { DENIED_NETWORKS } from '../../src/domain/registration/instance-endpoint.ts';
import { cwd, faultsOf, load, refusal } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('setting types');

test('accept numbers at their bounds and refuse numbers outside', () => {
  const bounds: [string, string[], string[]][] = [
    ['health-interval', ['1', '3600'], ['0', '0.9', '3600.1', '-1', '1e3', ' 1', '']],
    ['call-timeout', ['0.1', '3600'], ['0', '0.09', '3601']],
    ['max-retries', ['0', '10'], ['11', '-1', '0x1']],
    ['max-call-seconds', ['1', '86400'], ['0', '0.9', '86401']],
    ['grace-seconds', ['0', '600'], ['601']],
  ];
  for (const [flag, good, bad] of bounds) {
    for (const value of good) load({ flags: { [flag]: value } });
    for (const value of bad) assert.match(refusal({ flags: { [flag]: value } }), `--${flag}: expected`);
  }
});

/** Values that are read unchanged. */
const same = (...values: unknown[]): [unknown, unknown][] => values.map((value) => [value, value]);
/** Texts, and the values that they are read as. */
const as = (values: Record<string, unknown>): [unknown, unknown][] => Object.entries(values);

const redisUrl = url('a URL', ['redis', 'rediss']);
const KINDS: [SettingType<unknown>, good: [unknown, unknown][], bad: unknown[]][] = [
  [
    secretText(3, 5),
    same('abc', 'äb1', '12345'),
    ['', 'ab', '123456', 'äää', 'a\0bc', 7, null, true, ['abc']],
  ],
  [
    secretKeys(3),
    [
      ...as({ abc: ['abc'], 'a,b': ['a,b'], 'abc,defg': ['abc', 'defg'], ' abc , def ': ['abc', 'def'] }),
      [
        ['a,bc', 'def'],
        ['a,bc', 'def'],
      ],
    ],
    ['', 'ab', ',', 'abc,de', 'abc,', ['abc', 'de'], ['abc', 7], [], Array(9).fill('abc').join()],
  ],
  [
    redisUrl,
    same('redis://h', 'REDISS://u:p@h:1/0'),
    ['', 'redis', 'http://h', 'redis:h', 'redis://a b', 7, null],
  ],
  [SETTINGS.nodeId.kind, same('web-1:8080'), ['', 'a b', '-a', 'x'.repeat(129), 7]],
  [
    commandPatterns,
    [...as({ none: [], '[["npx","*name"]]': [['npx', '*name']] }), ...same([['npx', '-y']])],
    ['', 'npx', '["npx"]', '[[]]', [['']], [[1]], [['a'], 'b'], 7, null],
  ],
  [
    boolean,
    [...same(true, false), ...as({ YES: true, on: true, 1: true, no: false })],
    ['', 'maybe', 1, null, [true]],
  ],
  [
    integerWithin(1, 5),
    [...same(1), ...as({ 5: 5 })],
    ['6', 0, '1.5', '+1', '0x1', '1e0', Number.NaN, '5 ', null, [1]],
  ],
  [
    seconds(0.1, 5),
    [...as({ '0.25': 250 }), [5, 5_000]],
    ['.5', '5.', '5s', '5.001', Number.POSITIVE_INFINITY, true],
  ],
  [choice(['a', 'b'], { c: 'b' }), as({ A: 'a', c: 'b' }), ['d', '', 'constructor', ['a'], true]],
  [
    hostName,
    [...same('localhost', '0.0.0.0', 'my_h.a', 'fe80::1%eth0'), ['[::1]', '::1'], ['::1%lo', '::1']],
    ['', 'h:80', 'http://h', '*', 'a b', '-h', 7],
  ],
  [
    hostHeader,
    [...same('h:80', '[::1]:80'), ['H.e', 'h.e'], ['::1', '[::1]']],
    ['', '*', 'http://h', 'h/', 'h:', 'h:65536', '[::1]:99999', 8080],
  ],
  [
    origin,
    [
      ...same('chrome-extension://abc'),
      ...as({ 'https://a.example/': 'https://a.example', 'HTTP://A.example:80': 'http://a.example' }),
    ],
    ['*', 'null', 'a.example', 'https://', 'https://a/b', 'https://u@a', 7],
  ],
  [originOrAll, same('*', 'http://a'), ['**', 'a']],
  [
    network,
    [
      ...same('0.0.0.0/0', ...DENIED_NETWORKS),
      ...as({
        '10.0.0.0/08': '10.0.0.0/8',
        '10.1.2.3': '10.1.2.3/32',
        'FD00::/8': 'fd00::/8',
        '::1': '::1/128',
      }),
    ],
    [
      ...['10.0.0.0/33', '10.0.0', 7, '', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129'],
      ...['fe80::1%eth0', 'localhost', '10.0.0.0/8 ', '010.0.0.1'],
    ],
  ],
  [
    commaSeparated(integerWithin(1, 5)),
    [...as({ '1, 2': [1, 2], none: [] }), ...same([])],
    ['', '1,', '1,9', 1, { a: 1 }, null],
  ],
];

test('accept exactly the values of their type', () => {
  for (const [kind, good, bad] of KINDS) {
    for (const [raw, value] of good) assert.equal(kind.read(raw, cwd), value, `${kind.type}: ${raw}`);
    for (const raw of bad) assert.is(kind.read(raw, cwd), undefined, `${kind.type}: ${raw}`);
  }
});

test('mask the password and the options of a URL, and know whether it contains a secret', () => {
  const kind = url('a URL');
  const cases: [string, string, boolean][] = [
    ['sqlite:///gateway.db', 'sqlite:///gateway.db', false],
    ['postgresql://me@h:5432/db', 'postgresql://me@h:5432/db', false],
    ['postgresql://me:hunter2@h/db', 'postgresql://me:********@h/db', true],
    ['mssql://sa:p:w@h/db?encrypt=true', 'mssql://sa:********@h/db?********', true],
    ['postgresql://h/db?password=hunter2', 'postgresql://h/db?********', true],
    ['redis://:hunter2@h', 'redis://:********@h', true],
    // Only the last @ ends the password, and a name of Azure contains one.
    ['postgresql://me:hunter@2@h/db', 'postgresql://me:********@h/db', true],
    ['postgresql://me@server:hunter2@h/db', 'postgresql://me@server:********@h/db', true],
  ];
  for (const [value, shown, isSecret] of cases) {
    assert.equal([kind.mask?.(value), kind.holdsSecret?.(value)], [shown, isSecret], value);
  }
});

test('read roles, which providers and issuers may name, and name what is wrong with one', () => {
  const support = { scopes: ['tools:call'], views: ['support'], tools: ['github/issues_*', '!*/delete'] };
  const issuer = { issuer: 'https://login.example.com', roles: { staff: { role: 'support' } } };
  const written = load({
    yaml: JSON.stringify({ roles: { support, ops: { scopes: ['admin'] } }, auth: { issuers: [issuer] } }),
  });
  const ops = { scopes: ['gateway:read', 'gateway:write', 'tools:call', 'admin'] };
  assert.equal(written.roles, { support, ops });
  assert.equal(written.oauth.issuers[0]?.roles, [['staff', { role: 'support' }]]);
  const [row] = written.rows.filter(({ name }) => name === 'roles');
  assert.equal(load({ env: { GATEWAY_ROLES: row?.value ?? '' } }).roles, written.roles);
  assert.equal(load({ env: { GATEWAY_ROLES: 'none' } }).roles, {});
  const bad: [object, string][] = [
    [{ admin: support }, 'it is built in'],
    [{ Support: support }, 'a name has lower-case letters'],
    [{ [`a${'b'.repeat(31)}`]: support }, 'at most 31 characters'],
    [{ support: {} }, '`scopes` must be a list of scopes'],
    [{ support: { scopes: ['root'] } }, '`scopes` must be a list of scopes'],
    [{ support: { ...support, tools: ['issues_*'] } }, '`tools` must be a list of `<template>/<glob>`'],
    [{ support: { ...support, views: ['A'] } }, '`views` must be a list of ids'],
    [{ support: { ...support, rights: [] } }, 'unknown key "rights"'],
    [
      { support: { ...support, tools: Array(129).fill('a/b') } },
      '`tools`: List should have at most 128 entries',
    ],
    [
      { support: { ...support, tools: Array(128).fill(`a/${'b'.repeat(200)}`) } },
      '`tools`: List should have at most 16384 characters',
    ],
    [
      Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`role-${n}`, support])),
      'at most 100 roles, not 101',
    ],
  ];
  for (const [roles, fault] of bad) assert.match(refusal({ yaml: JSON.stringify({ roles }) }), fault);
  const lost = JSON.stringify({ auth: { issuers: [issuer] } });
  assert.match(refusal({ yaml: lost }), '`role` must be one of admin, user, not support');
});

test('a fault in an entry of roles, issuers and providers has the line of the entry', () => {
  const yaml = `roles:
  ops: { scopes: [admin] }
  support:
    scopes: [root]
auth:
  issuers:
    - issuer: https://a.example
      roles: { staff: { role: ops } }
    - issuer: https://b.example
      roles: { staff: superhero }
  providers:
    - issuer: not a URL
`;
  const lines = faultsOf(() => load({ yaml })).join('\n');
  assert.match(lines, /^gateway\.yaml:3, roles, "support": `scopes` must/m);
  assert.match(lines, /^gateway\.yaml:9, auth\.issuers, entry 2: `roles`, staff: expected `role`$/m);
  assert.match(lines, /^gateway\.yaml:12, auth\.providers, entry 1: `issuer` must/m);
  const [roles = ''] = yaml.split('  providers:');
  const undefinedRole = roles.replace('superhero', '{ role: hero }').replace('root', 'admin');
  assert.match(
    refusal({ yaml: undefinedRole }),
    /^gateway\.yaml:9, auth\.issuers, https:\/\/b\.example: `role`/m,
  );
  const env = { GATEWAY_AUTH_ISSUERS: '[{"issuer": 7}]' };
  assert.match(refusal({ env }), /^GATEWAY_AUTH_ISSUERS, entry 1: /);
});

test('read other issuers, and name what is wrong with an entry', () => {
  const yaml = (entry: object) => JSON.stringify({ auth: { issuers: [entry] } });
  const good = {
    issuer: 'https://login.example.com/realm/',
    roles: { staff: { role: 'user', templates: ['files'] } },
  };
  const written = load({
    yaml: yaml({ ...good, audience: 'api://x', jwks_uri: 'https://keys.example.com/k?v=1', id_jag: true }),
  });
  assert.equal(written.oauth.issuers, [
    {
      ...{
        issuer: good.issuer,
        audience: ['api://x'],
        jwksUri: 'https://keys.example.com/k?v=1',
        claims: {},
        idJag: true,
      },
      roles: [['staff', { role: 'user', templates: ['files'] }]],
    },
  ]);
  const [row] = written.rows.filter(({ name }) => name === 'auth.issuers');
  const again = load({ env: { GATEWAY_AUTH_ISSUERS: row?.value ?? '' } });
  assert.equal(again.oauth.issuers, written.oauth.issuers);
  assert.equal(load({ env: { GATEWAY_AUTH_ISSUERS: 'none' } }).oauth.issuers, []);
  const bad: [object, string][] = [
    [{ ...good, issuer: 'http://login.example.com' }, '`issuer` must be an https URL'],
    [{ ...good, issuer: 'https://a:b@login.example.com' }, '`issuer` must be an https URL'],
    [{ ...good, jwks_uri: 'http://10.0.0.1/keys' }, '`jwks_uri` must be an https URL'],
    [{ ...good, id_jag: 'yes' }, '`id_jag` must be true or false'],
    [{ ...good, audience: [] }, '`audience` must be'],
    [{ ...good, claims: { group: 'groups' } }, 'unknown key "group"'],
    [{ ...good, roles: {} }, '`roles` must name a role'],
    [{ ...good, roles: { staff: { role: 'root' } } }, '`role` must be one of admin, user'],
    [
      { ...good, roles: { staff: { role: 'user', scopes: ['admin'] } } },
      '`scopes` must be a list of scopes of the role user',
    ],
    [{ ...good, roles: { staff: { role: 'user', templates: ['../x'] } } }, '`templates` must be'],
    [{ ...good, typ: 'JWT' }, 'unknown key "typ"'],
  ];
  for (const [entry, fault] of bad) assert.match(refusal({ yaml: yaml(entry) }), fault);
  const twice = JSON.stringify({ auth: { issuers: [good, good] } });
  assert.match(refusal({ yaml: twice }), 'is listed twice');
  load({ yaml: yaml({ ...good, issuer: 'http://127.0.0.1:9000' }) });
});

test('read identity providers without showing their secrets, and name what is wrong with an entry', () => {
  const yaml = (entry: object) => JSON.stringify({ auth: { providers: [entry] } });
  const good = {
    ...{ issuer: 'https://login.example.com/realms/a/', client_id: 'gw', client_secret: 'hush-1234' },
    ...{ label: 'Example', roles: { staff: { role: 'user', templates: ['files'] } } },
  };
  const loaded = load({ yaml: yaml({ ...good, require: { hd: 'example.com' }, session_hours: 8 }) });
  assert.equal(loaded.oauth.providers, [
    {
      ...{ id: 'login.example.com-realms-a', issuer: good.issuer, label: 'Example', claims: {} },
      ...{ clientId: 'gw', clientSecret: 'hush-1234', sessionMs: 8 * 3_600_000 },
      roles: [['staff', { role: 'user', templates: ['files'] }]],
      require: [['hd', ['example.com']]],
    },
  ]);
  const [row] = loaded.rows.filter(({ name }) => name === 'auth.providers');
  assert.match(row?.value ?? '', /"label":"Example"/);
  assert.not.match(JSON.stringify(row?.value) + JSON.stringify(row?.typed), /hush/);
  const { roles: _, ...open } = good;
  const [required] = load({ yaml: yaml({ ...open, require: { tid: ['1'] } }) }).oauth.providers;
  assert.equal(required?.everyone, { role: 'user' });
  const [all] = load({ yaml: yaml({ ...open, everyone: { role: 'admin' } }) }).oauth.providers;
  assert.equal(all?.everyone, { role: 'admin' });
  const limited = { ...good, roles: { staff: { role: 'user', scopes: ['gateway:read'] } } };
  const [reader] = load({ yaml: yaml(limited) }).oauth.providers;
  assert.equal(reader?.roles, [['staff', { role: 'user', scopes: ['gateway:read'] }]]);
  assert.is(load({ yaml: yaml({ ...good, id_jag: true }) }).oauth.providers[0]?.idJag, true);
  const bad: [object, string][] = [
    [{ ...good, id_jag: 'yes' }, '`id_jag` must be true or false'],
    ...['admin', 'gateway:wirte'].map((scope): [object, string] => [
      { ...good, everyone: { role: 'user', scopes: [scope] } },
      'auth.providers, entry 1: `everyone`: `scopes` must be a list of scopes of the role user: gateway:read, tools:call',
    ]),
    [open, 'each account of the provider could sign in'],
    [{ ...good, issuer: 'http://login.example.com' }, '`issuer` must be an https URL'],
    [{ ...good, issuer: 'https://login.microsoftonline.com/common/v2.0' }, 'stands for all companies'],
    [{ ...good, client_secret: '' }, '`client_secret` must be a text'],
    [{ ...good, label: 'a\u202eb' }, '`label` must be'],
    [{ ...good, claims: { scope: 'scp' } }, 'unknown key "scope"'],
    [{ ...good, require: { hd: [] } }, '`require`: hd must be'],
    [{ ...good, everyone: { role: 'Root' } }, '`everyone`: `role` must be the name of a role'],
    [{ ...good, everyone: { role: 'root' } }, '`role` must be one of admin, user, not root'],
    [{ ...good, session_hours: 0 }, '`session_hours` must be'],
    [{ ...good, domain: 'x' }, 'unknown key "domain"'],
  ];
  for (const [entry, fault] of bad) {
    assert.match(refusal({ yaml: yaml(entry) }), fault);
    assert.not.match(refusal({ yaml: yaml(entry) }), /hush/);
  }
  assert.match(refusal({ yaml: JSON.stringify({ auth: { providers: [good, good] } }) }), 'is listed twice');
});

test.run();
