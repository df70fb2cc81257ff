import * as assert from 'uvu/assert';
import { commandRefusal } from '../../../src/domain/command.ts';
import { ERROR_STATUS } from '../../../src/domain/errors.ts';
import { ERROR_SAMPLES } from '../../../src/http/openapi/error-samples.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the samples of errors');

test('are of the code that they stand for, and every code has one', () => {
  assert.equal(Object.keys(ERROR_SAMPLES).sort(), Object.keys(ERROR_STATUS).sort());
  for (const [code, sample] of Object.entries(ERROR_SAMPLES)) assert.is(sample.code, code);
});

test('say something', () => {
  for (const { message } of Object.values(ERROR_SAMPLES)) assert.match(message, /^.{10,200}$/);
});

test('of a command is in the words of the rule', () => {
  const refusal = commandRefusal({ words: ['sh'] }, { allowed: [], declaredNames: [] });
  assert.is(ERROR_SAMPLES.COMMAND_NOT_ALLOWED.message, refusal);
});

test.run();
