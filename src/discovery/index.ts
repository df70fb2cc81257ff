// The table of providers: where deployments are looked for.

import { docker } from './docker.ts';
import { kubernetes } from './kubernetes.ts';
import { podman } from './podman.ts';
import type { Provider } from './provider.ts';

export const PROVIDERS: readonly Provider[] = [docker, podman, kubernetes];
