// Roles, scopes and the questions that are asked of a principal; the shapes that accounts are written in.

import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import {
  ANONYMOUS,
  Email,
  isActiveAdmin,
  KeyName,
  mayDo,
  mayUse,
  type Principal,
  passwordFault,
  ROLES,
  SCOPES,
  type Scope,
  TemplateList,
  Username,
  usernameKey,
} from '../../src/domain/account.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('accounts');

function principalWith(...scopes: Scope[]): Principal {
  return { ...ANONYMOUS, id: 'user:1', kind: 'user', scopes: new Set(scopes) };
}

test('takes names that differ in case only for one', () => {
  assert.equal(['Ada', 'ada', 'ADA', 'Ada.L_9@x-Y'].map(usernameKey), ['ada', 'ada', 'ada', 'ada.l_9@x-y']);
});

test('counts as an active admin who is both', () => {
  const each = [true, false].flatMap((isActive) => ROLES.map((role) => ({ role, isActive })));
  assert.equal(each.filter(isActiveAdmin), [{ role: 'admin', isActive: true }]);
});

test('lets a principal do what one of its scopes allows, and an admin everything', () => {
  for (const held of SCOPES) {
    for (const needed of SCOPES) {
      assert.is(
        mayDo(principalWith(held), [needed]),
        held === needed || held === 'admin',
        `${held} ${needed}`,
      );
    }
    assert.is(mayDo(principalWith(), [held]), false);
  }
  assert.is(mayDo(principalWith('tools:call'), ['gateway:read', 'tools:call']), true);
  assert.is(mayDo(principalWith('gateway:write'), ['gateway:read', 'tools:call']), false);
});

test('lets a principal use its templates, or all when none are named', () => {
  assert.is(mayUse(ANONYMOUS, 'demo'), true);
  assert.is(mayUse({ ...ANONYMOUS, templates: new Set(['demo']) }, 'demo'), true);
  assert.is(mayUse({ ...ANONYMOUS, templates: new Set(['demo']) }, 'other'), false);
  assert.is(mayUse({ ...ANONYMOUS, templates: new Set() }, 'demo'), false);
});

test('takes names, addresses and lists of templates, and nothing that could be mistaken for another', () => {
  const cases = [
    [
      Username,
      ['ada', 'A.d_a-1@x', '0', 'a'.repeat(64)],
      ['', '.a', 'a b', 'a/b', 'ä', 'a\n', 'a'.repeat(65)],
    ],
    [Email, ['admin@localhost', 'a+b@x.example'], ['', 'a', '@a', 'a@', 'a@b@c', 'a b@c', 'a@b\n']],
    [
      KeyName,
      ['x', 'CI of the 2nd team 😀'],
      ['', 'x'.repeat(129), 'a\nb', 'a\u001b[31m', 'a\u202egpj', '\u200b'],
    ],
    [TemplateList, [[], ['demo', 'a-1']], [['Demo'], [''], ['a', 'a'], ['../x'], 'demo']],
  ] as const;
  for (const [schema, good, bad] of cases) {
    const shape = Compile(schema);
    for (const value of good) assert.is(shape.Check(value), true, JSON.stringify(value));
    for (const value of bad) assert.is(shape.Check(value), false, JSON.stringify(value));
  }
});

test('asks for passwords of 8 characters to 72 bytes, without NUL and halves of characters', () => {
  const table: [password: string, fault: ReturnType<typeof passwordFault>][] = [
    ['', 'too short'],
    ['1234567', 'too short'],
    ['12345678', undefined],
    ['🙂🙂🙂🙂🙂🙂🙂', 'too short'],
    ['🙂🙂🙂🙂🙂🙂🙂🙂', undefined],
    ['x'.repeat(72), undefined],
    ['x'.repeat(73), 'too long'],
    ['ü'.repeat(36), undefined],
    ['ü'.repeat(37), 'too long'],
    ['1234\u00005678', 'not text'],
    ['12345678\ud800', 'not text'],
    ['\0', 'not text'],
  ];
  for (const [password, fault] of table) assert.is(passwordFault(password), fault, JSON.stringify(password));
});

test.run();
