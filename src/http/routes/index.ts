// The table of routes, for the router, the API description and the documentation. No two routes match the same
// request, so their order is that of the documents; only a route with `unlessTemplate` precedes the route for any template.

import type { HttpRoute } from '../routing/route.ts';
import { accountRoutes, userRoutes } from './accounts/accounts.ts';
import { apiKeyRoutes } from './accounts/api-keys.ts';
import { auditRoutes } from './accounts/audit.ts';
import { clientRoutes } from './accounts/clients.ts';
import { connectionRoutes } from './accounts/connections.ts';
import { grantRoutes } from './accounts/grants.ts';
import { connectRoutes } from './connect.ts';
import { documentRoutes, homeRoutes } from './documents.ts';
import { eventRoutes } from './gateway/events.ts';
import { healthRoutes } from './gateway/health.ts';
import { nodeRoutes } from './gateway/nodes.ts';
import { livenessRoutes } from './gateway/readiness.ts';
import { settingRoutes } from './gateway/settings.ts';
import { statisticsRoutes } from './gateway/statistics.ts';
import { instanceRoutes } from './instances/instances.ts';
import { registrationRoutes } from './instances/registration.ts';
import { serverDoctorRoutes } from './instances/server-doctor.ts';
import { serverRoutes, serverToolRoutes } from './instances/servers.ts';
import { syncRoutes } from './instances/sync.ts';
import { mcpEndpointRoutes } from './mcp-endpoint.ts';
import { registryServerRoutes } from './registry-servers.ts';
import { restCallRoutes } from './rest-calls.ts';
import { sessionRoutes } from './sessions.ts';
import { definitionRoutes } from './templates/definitions.ts';
import { templateHealthRoutes } from './templates/template-health.ts';
import { templateToolRoutes } from './templates/template-tools.ts';
import { templateRoutes } from './templates/templates.ts';
import { viewToolRoutes } from './templates/view-tools.ts';
import { viewRoutes } from './templates/views.ts';
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
