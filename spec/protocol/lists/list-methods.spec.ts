import * as assert from 'uvu/assert';
import { LIST_METHODS, listOf } from '../../../src/domain/mcp.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list methods');

test('knows the list of every method that has one', () => {
  for (const [list, method] of Object.entries(LIST_METHODS)) assert.is(listOf(method), list);
  for (const method of ['tools/call', 'tools', 'constructor', '']) assert.is(listOf(method), undefined);
});

test.run();
