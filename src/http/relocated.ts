// Findings about an instance point to where the registry thinks that it was written. Each route has its own place for it.

import { GatewayError, type ValidationItem } from '../domain/errors.ts';
import { validationFailed } from '../domain/request-errors.ts';

type Loc = ValidationItem['loc'];

/** The same error with other places; anything that is no VALIDATION_ERROR stays as it is. */
export function relocated(thrown: unknown, move: (loc: Loc) => Loc): unknown {
  const items = thrown instanceof GatewayError ? thrown.facts.items : undefined;
  if (items === undefined) return thrown;
  return validationFailed(items.map((item) => ({ ...item, loc: move(item.loc) })));
}
