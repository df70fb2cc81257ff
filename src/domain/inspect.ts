// Looks through a parsed JSON value for what no database, backend or log should ever get: NUL characters, lone
// surrogates, and nesting that a recursive reader would die of.

import type { ValidationItem } from './errors.ts';
import { LIMITS } from './limits.ts';
import { isCleanText, NOT_UNICODE } from './text.ts';

/** The issues about one body. Recursion is bounded by the depth that is allowed. */
export function inspect(body: unknown): ValidationItem[] {
  const issues: ValidationItem[] = [];
  const path: (string | number)[] = ['body'];
  const report = (issue: Pick<ValidationItem, 'msg' | 'type'>): void => {
    if (issues.length < LIMITS.validationIssues) issues.push({ loc: [...path], ...issue });
  };
  const visit = (value: unknown): void => {
    if (typeof value === 'string') {
      if (!isCleanText(value)) report(NOT_UNICODE);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    if (path.length > LIMITS.nestingDepth) {
      issues.splice(0, issues.length, TOO_DEEP);
      return;
    }
    if (Array.isArray(value)) visitItems(value);
    else visitFields(value);
  };
  const visitItems = (items: readonly unknown[]): void => {
    for (const [index, item] of items.entries()) {
      path.push(index);
      visit(item);
      path.pop();
    }
  };
  const visitFields = (fields: object): void => {
    for (const [key, field] of Object.entries(fields)) {
      // The bad key itself is not repeated: its object is named instead.
      if (!isCleanText(key)) {
        report(NOT_UNICODE);
        continue;
      }
      path.push(key.slice(0, LIMITS.locCharacters));
      visit(field);
      path.pop();
    }
  };
  visit(body);
  return issues;
}

const TOO_DEEP: ValidationItem = {
  loc: ['body'],
  msg: `Value error, nested deeper than ${LIMITS.nestingDepth} levels`,
  type: 'value_error',
};
