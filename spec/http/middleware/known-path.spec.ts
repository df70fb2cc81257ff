import * as assert from 'uvu/assert';
import { templateNotFound } from '../../../src/domain/error-catalogue.ts';
import { createGateway } from '../../../src/gateway.ts';
import { knownPath } from '../../../src/http/middleware/routing.ts';
import { TemplateParams } from '../../../src/http/parameters.ts';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { defineRoute } from '../../../src/http/route.ts';
import { startRoute } from '../../helpers/http-middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('names in the path, before the body');

const facts = {
  method: 'GET',
  summary: 'A route of the spec',
  scope: 'tools:call',
  answers: {},
  errors: [],
  handler: () => json(200, {}),
} as const;

test('are known, or missed in the words of every route', async () => {
  const gateway = await createGateway({ templates: ['demo'] });
  const route = defineRoute({ ...facts, path: '/:template', request: { params: TemplateParams } });
  const app = await startRoute('/:template', knownPath(route, gateway), (context) =>
    respond(context, json(200, {})),
  );
  const outcomes = [];
  for (const name of ['demo', 'none', 'Bad_Name', '%00']) {
    const { status, body } = await app.ask('GET', `/${name}`);
    outcomes.push([status, body.error_code]);
  }
  assert.equal(outcomes, [
    [200, undefined],
    [404, 'TEMPLATE_NOT_FOUND'],
    [404, 'TEMPLATE_NOT_FOUND'],
    [422, 'VALIDATION_ERROR'],
  ]);
  app.close();
  await gateway.close();
});

test('need not be there', async () => {
  const gateway = {
    requireTemplate: (name: string) => {
      throw templateNotFound(name);
    },
  };
  const app = await startRoute('/', knownPath(defineRoute({ ...facts, path: '/' }), gateway), (context) =>
    respond(context, json(200, {})),
  );
  assert.is((await app.ask('GET', '/')).status, 200);
  app.close();
});

test.run();
