import * as assert from 'uvu/assert';
import { passwordFault } from '../../src/domain/account.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the rule for passwords');

test('asks for 8 characters to 72 bytes, without NUL and halves of characters', () => {
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
