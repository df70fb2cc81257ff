// The page of Swagger UI, rendered by koa2-swagger-ui and then made to load nothing from elsewhere: that package means
// a CDN and fonts of Google. Addresses are relative to /docs, so the page also works behind a path prefix.

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';
import { SWAGGER_ASSETS } from './assets.ts';
import type { Page } from './page.ts';
import { inlinePartsOf, pageHeaders } from './policy.ts';

/** Renders the page; koa2-swagger-ui is loaded for it, which costs 45 ms once. */
export async function swaggerPage(): Promise<Page> {
  const { koaSwagger } = await import('koa2-swagger-ui');
  const render = koaSwagger({
    title: 'Stagedoor: API',
    routePrefix: '/docs',
    swaggerCdnUrl: 'docs',
    swaggerVersion: 'assets',
    favicon: 'docs/assets/favicon-32x32.png',
    hideTopbar: true,
    swaggerOptions: {
      url: 'openapi.json',
      // The default sends the address of the description to a service that checks it.
      validatorUrl: null,
      deepLinking: true,
      persistAuthorization: false,
      displayRequestDuration: true,
      tryItOutEnabled: true,
    },
  });
  // A middleware of koa renders for a request, so it gets one that nobody sent.
  const request = new IncomingMessage(new Socket());
  request.url = '/docs';
  const context = new Koa().createContext(request, new ServerResponse(request));
  await render(context, async () => {});
  const html = selfHosted(String(context.body));
  return { html, headers: pageHeaders(inlinePartsOf(html)) };
}

/** Takes out what is loaded from elsewhere, and the one style attribute, which the policy does not allow. */
function selfHosted(html: string): string {
  const page = html
    .replace(/\s*<link href="https:\/\/fonts\.googleapis\.com[^>]*>/, '')
    .replace(/ style="position:absolute;width:0;height:0"/, ' width="0" height="0"');
  const names = Object.keys(SWAGGER_ASSETS).filter((name) => !page.includes(`"docs/assets/${name}"`));
  if (names.length > 0 || /(?:src|href)="(?:https?:)?\/\/|\sstyle="/.test(page)) {
    throw new Error(`the page of koa2-swagger-ui is not the one that is known here: ${names.join(', ')}`);
  }
  return page;
}
