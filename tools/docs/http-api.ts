// Every route: method, path, purpose and required permission, from the table of routes.

import { pathTemplate, TAGS, tagOf } from '../../src/http/openapi/openapi-document.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import type { HttpRoute } from '../../src/http/routing/route.ts';
import { code, table } from './markdown.ts';

export function routesReference(): string {
  return TAGS.map(({ name, description }) => {
    const routes = ROUTES.filter(({ path }) => tagOf(path) === name);
    return [`### ${name}`, description, table(['Request', 'What it does', 'Scope'], routes.map(row))].join(
      '\n\n',
    );
  }).join('\n\n');
}

function row({ method, path, summary, scope }: HttpRoute): readonly string[] {
  const scopes = [scope].flat().map((each) => (each === 'open' ? 'none' : code(each)));
  return [code(`${method} ${pathTemplate(path)}`), summary, scopes.join(' or ')];
}
