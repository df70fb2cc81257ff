import * as assert from 'uvu/assert';
import { issueText } from '../../src/cli/answers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('finding text');

test('names the option that was typed, not the field that it became', () => {
  const cases: readonly (readonly [readonly (string | number)[], string])[] = [
    [['body', 'instance', 'command'], '--command: no good'],
    [['body', 'instance', 'env_vars', 'A-B'], '--env A-B: no good'],
    [['body', 'instance', 'headers', 'Host'], '--header Host: no good'],
    [['body', 'template_name'], '<template>: no good'],
    [['body', 'password'], '--password: no good'],
    [['body', 'expires_at'], '--expires: no good'],
    [['query', 'wait'], '--wait: no good'],
    [['body', 'templates', 1], '--templates 1: no good'],
  ];
  for (const [loc, line] of cases) assert.is(issueText({ loc, msg: 'no good', type: 'x' }), line);
});

test('leaves what no option makes as it is', () => {
  const paths = [
    ['body'],
    ['body', 'instance'],
    ['body', 'load_balancer', 'timeout'],
    ['body', 'constructor'],
  ];
  for (const loc of paths) assert.is(issueText({ loc, msg: 'odd', type: 'x' }), `${loc.join('.')}: odd`);
  assert.is(issueText({ msg: 'odd' }), 'request: odd');
});

test('tells rules of names in words', () => {
  const pattern = { msg: 'must match ^[a-z]', type: 'string_pattern_mismatch' };
  assert.match(issueText({ ...pattern, loc: ['body', 'template_name'] }), /^a template name is lower-case/);
  assert.match(issueText({ ...pattern, loc: ['body', 'instance', 'id'] }), /^an instance id is letters/);
  assert.is(issueText({ ...pattern, loc: ['body', 'email'] }), '--email: must match ^[a-z]');
});

test.run();
