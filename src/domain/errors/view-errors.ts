// The errors of views: see error-catalogue.ts.

import { GatewayError } from './errors.ts';

export function viewNotFound(id: string): GatewayError {
  return new GatewayError('VIEW_NOT_FOUND', `There is no view ${JSON.stringify(id)}.`);
}

/** Views and templates share their names, because they share the path /mcp/{name}. `taken`: what has the name. */
export function duplicateView(id: string, taken: 'template' | 'view'): GatewayError {
  return new GatewayError('DUPLICATE_VIEW', `The name "${id}" belongs to a ${taken}: choose another one.`);
}

/** `If-Match` names another version. */
export function viewChanged(id: string): GatewayError {
  const message = `The view "${id}" is not as it was when you read it: read it again, then change it.`;
  return new GatewayError('PRECONDITION_FAILED', message);
}
