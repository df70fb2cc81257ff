// Refuses names in the path before a body is read: one that cannot be a name, and a template that nobody knows.
// It stands in front of routes whose later errors are no longer in the words of this API.

import type { Gateway } from '../../gateway.ts';
import type { RouteMiddleware } from '../context.ts';
import type { Route } from '../route.ts';

/** TEMPLATE_NOT_FOUND; VALIDATION_ERROR for what is no text. */
export function knownPath(
  route: Pick<Route, 'checkPath'>,
  gateway: Pick<Gateway, 'requireTemplate'>,
): RouteMiddleware {
  return (context, next) => {
    const { params } = context;
    route.checkPath(params);
    if (params.template !== undefined) gateway.requireTemplate(params.template);
    return next();
  };
}
