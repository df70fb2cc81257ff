// Checks the settings of a template before they are stored: requests and files were checked where they came in, what an
// embedding program gives was not.

import { Compile } from 'typebox/schema';
import { validationFailed } from '../domain/request-errors.ts';
import { LoadBalancerSettings } from '../domain/template.ts';
import { issuesOf } from '../domain/validation-issues.ts';

const validator = Compile(LoadBalancerSettings);

/** VALIDATION_ERROR for settings that no template can follow. */
export function checkSettings(settings: LoadBalancerSettings): void {
  if (validator.Check(settings)) return;
  const found = issuesOf(validator.Errors(settings)[1]);
  throw validationFailed(found.map((msg) => ({ loc: ['body', 'load_balancer'], msg, type: 'value_error' })));
}
