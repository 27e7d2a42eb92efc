import type { Program } from '../programs.ts'

/** What people run as it is. */
export const TOOLS: Program[] = [{ name: 'json-server', packages: { 'json-server': '0.17' }, files: ['db.json'],
  entry: 'node_modules/.bin/json-server', args: ({ port }) => ['--quiet', '--port', String(port), 'db.json'],
  asks: { path: '/posts', expects: 'hello from a file' } }, { name: 'json-server-1',
  packages: { 'json-server': '1.0.0-beta.3' }, files: ['db.json'], entry: 'node_modules/.bin/json-server',
  args: ({ port }) => ['--port', String(port), 'db.json'], asks: { path: '/posts', expects: 'hello from a file' } }, {
  name: 'node-red',
  packages: { 'node-red': '4' },
  entry: 'node_modules/.bin/node-red',
  args: ({ port, state }) => ['--port', String(port), '--userDir', state],
  asks: { path: '/', expects: 'Node-RED' }
}, {
  name: 'verdaccio',
  packages: { verdaccio: '6.1' },
  // It asks for the tag `cjs`, which not every registry has; that is this version.
  overrides: { 'node-fetch': '2.6.7' },
  files: ['verdaccio.yaml'],
  entry: 'node_modules/.bin/verdaccio',
  args: ({ port }) => ['--config', 'verdaccio.yaml', '--listen', `127.0.0.1:${port}`],
  asks: { path: '/-/ping', expects: '{}' }
}, { name: 'swagger-ui', packages: { 'swagger-ui-express': '5', express: '5' }, entry: 'swagger-ui.cjs',
  asks: { expects: 'Swagger UI' } }, { name: 'bull-board',
  packages: { '@bull-board/express': '6', '@bull-board/api': '6', express: '5' }, entry: 'bull-board.cjs',
  asks: { path: '/queues/api/queues', expects: '"queues":[]' } }, { name: 'mockoon', packages: { '@mockoon/cli': '9' },
  files: ['mockoon.json'], entry: 'node_modules/.bin/mockoon-cli',
  args: ({ port }) => ['start', '--data', 'mockoon.json', '--port', String(port), '--disable-log-to-file'],
  asks: { path: '/hello', expects: 'hello from mockoon' } }, { name: 'peer', packages: { peer: '1' },
  entry: 'node_modules/.bin/peerjs', args: ({ port }) => ['--port', String(port)],
  asks: { path: '/', expects: 'PeerJS Server' } }, { name: 'maildev', packages: { maildev: '2' },
  entry: 'node_modules/.bin/maildev',
  args: ({ port, secondPort }) => ['--web', String(port), '--smtp', String(secondPort), '--silent'],
  listens: ({ port, secondPort }) => [String(port), String(secondPort)], asks: { path: '/healthz', expects: 'true' } },
  { name: 'pouchdb-server', packages: { 'pouchdb-server': '4' }, entry: 'node_modules/.bin/pouchdb-server',
    args: (
      { port, state }
    ) => ['--port', String(port), '--in-memory', '--config', `${state}/config.json`, '--no-stdout-logs'],
    asks: { expects: 'express-pouchdb' } }]
