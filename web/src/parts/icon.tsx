// The icons: one path each, in the colour of the text. An icon is never the only sign of a meaning.

const PATHS = {
  overview: 'M3 3h6v6H3zM11 3h6v6h-6zM3 11h6v6H3zM11 11h6v6h-6z',
  playground: 'M6 4l10 6-10 6z',
  activity: 'M2 10h4l2.5-6 4 12 2.5-6h3',
  sessions: 'M8 6H6a4 4 0 0 0 0 8h2M12 6h2a4 4 0 0 1 0 8h-2M7 10h6',
  nodes: 'M3 3h14v4H3zM3 13h14v4H3zM6 5h.1M6 15h.1M10 7v6',
  connect: 'M7 2v4M13 2v4M5 6h10v3a5 5 0 0 1-10 0zM10 14v4',
  grants: 'M4 10l4 4 8-9M2.5 17.5h15',
  connections: 'M3 10h7M10 6.5v7a3.5 3.5 0 0 0 0-7zM14 8.5h3M14 11.5h3',
  views: 'M2 10s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5zM10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  users: 'M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17a6 5 0 0 1 12 0',
  audit: 'M4 2.5h12v15H4zM7 7h6M7 10h6M7 13h3',
  settings: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4',
  healthy: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM6.5 10l2.5 2.5 4.5-5',
  warn: 'M10 3l8 14H2zM10 8v4M10 14.5v.1',
  bad: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM7 7l6 6M13 7l-6 6',
  draining: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM8 7v6M12 7v6',
  starting: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM10 6v4l3 2',
  stopped: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM7.5 7.5h5v5h-5z',
  info: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM10 9v5M10 6v.1',
  sun: 'M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v2M10 16v2M2 10h2M16 10h2',
  moon: 'M16 12A7 7 0 0 1 8 4a7 7 0 1 0 8 8z',
  auto: 'M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM10 2v16M10 10h8',
  menu: 'M3 5h14M3 10h14M3 15h14',
  copy: 'M7 7h10v10H7zM4 13H3V3h10v1',
  plus: 'M10 4v12M4 10h12',
  close: 'M5 5l10 10M15 5L5 15',
  leave: 'M8 3H3v14h5M8 10h9M14 7l3 3-3 3',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
