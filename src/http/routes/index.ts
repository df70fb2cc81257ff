// The table of routes, for the router, the API description and the documentation. No two routes match the same
// request, so their order is that of the documents; only a route with `unlessTemplate` precedes the route for any template.

import type { HttpRoute } from '../routing/route.ts';
import { accountRoutes, userRoutes } from './accounts.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { auditRoutes } from './audit.ts';
import { clientRoutes } from './clients.ts';
import { connectRoutes } from './connect.ts';
import { connectionRoutes } from './connections.ts';
import { definitionRoutes } from './definitions.ts';
import { documentRoutes, homeRoutes } from './documents.ts';
import { eventRoutes } from './events.ts';
import { grantRoutes } from './grants.ts';
import { healthRoutes } from './health.ts';
import { instanceRoutes } from './instances.ts';
import { mcpEndpointRoutes } from './mcp-endpoint.ts';
import { nodeRoutes } from './nodes.ts';
import { livenessRoutes } from './readiness.ts';
import { registrationRoutes } from './registration.ts';
import { registryServerRoutes } from './registry-servers.ts';
import { restCallRoutes } from './rest-calls.ts';
import { serverDoctorRoutes } from './server-doctor.ts';
import { serverRoutes, serverToolRoutes } from './servers.ts';
import { sessionRoutes } from './sessions.ts';
import { settingRoutes } from './settings.ts';
import { statisticsRoutes } from './statistics.ts';
import { syncRoutes } from './sync.ts';
import { templateHealthRoutes } from './template-health.ts';
import { templateToolRoutes } from './template-tools.ts';
import { templateRoutes } from './templates.ts';
import { viewToolRoutes } from './view-tools.ts';
import { viewRoutes } from './views.ts';
import { wellKnownRoutes } from './well-known.ts';

export const ROUTES: readonly HttpRoute[] = [
  ...mcpEndpointRoutes,
  ...restCallRoutes,
  ...registrationRoutes,
  ...templateRoutes,
  ...templateToolRoutes,
  ...definitionRoutes,
  ...serverDoctorRoutes,
  ...viewRoutes,
  ...viewToolRoutes,
  ...instanceRoutes,
  ...syncRoutes,
  ...connectRoutes,
  ...connectionRoutes,
  ...serverToolRoutes,
  ...serverRoutes,
  ...templateHealthRoutes,
  ...healthRoutes,
  ...statisticsRoutes,
  ...eventRoutes,
  ...sessionRoutes,
  ...nodeRoutes,
  ...settingRoutes,
  ...livenessRoutes,
  ...accountRoutes,
  ...userRoutes,
  ...apiKeyRoutes,
  ...grantRoutes,
  ...clientRoutes,
  ...auditRoutes,
  ...documentRoutes,
  ...registryServerRoutes,
  ...wellKnownRoutes,
  ...homeRoutes,
];
