import type { Program } from '../programs.ts'

const TYPESCRIPT = { project: 'typescript', asks: { expects: 'hello from typescript' } }
const JSON_SERVER = { packages: { 'json-server': '0.17' }, files: ['db.json'],
  asks: { path: '/posts', expects: 'hello from a file' } }

/** The same programs as people start them: by scripts, by names, by folders. */
export const STARTS: Program[] = [{ ...JSON_SERVER, name: 'start-npm-run',
  scripts: { serve: 'json-server --quiet db.json' }, start: ['npm'],
  args: ({ port }) => ['run', 'serve', '--', '--port', String(port)] }, { ...JSON_SERVER, name: 'start-npx',
  start: ['npx'], args: ({ port }) => ['json-server', '--quiet', '--port', String(port), 'db.json'] }, {
  name: 'start-script',
  packages: { 'http-server': '14' },
  files: ['public'],
  scripts: { serve: 'cross-env NO_UPDATE_NOTIFIER=1 http-server public' },
  start: ['--script', 'serve'],
  args: ({ port }) => ['-p', String(port)],
  asks: { path: '/index.html', expects: 'hello from a file' }
}, { name: 'start-verdaccio', packages: { verdaccio: '6.1' }, overrides: { 'node-fetch': '2.6.7' },
  files: ['verdaccio.yaml'], start: ['verdaccio'],
  args: ({ port }) => ['--config', 'verdaccio.yaml', '--listen', `127.0.0.1:${port}`],
  asks: { path: '/-/ping', expects: '{}' } }, { name: 'start-node-red', packages: { 'node-red': '4' },
  start: ['node-red'], args: ({ port, state }) => ['--port', String(port), '--userDir', state],
  asks: { path: '/', expects: 'Node-RED' } }, { name: 'start-next',
  packages: { next: '15', react: '19', 'react-dom': '19' }, project: 'next', build: [['next', 'build']],
  scripts: { start: 'NODE_ENV=production next start' }, start: ['npm'], args: () => ['start'],
  env: () => ({ NEXT_TELEMETRY_DISABLED: '1' }), asks: { expects: 'hello from next' } }, {
  name: 'start-next-standalone',
  packages: { next: '15', react: '19', 'react-dom': '19' },
  project: 'next-standalone',
  build: [['next', 'build']],
  scripts: { start: 'node .next/standalone/server.js' },
  start: [],
  env: () => ({ HOSTNAME: '127.0.0.1' }),
  asks: { expects: 'hello from next' }
}, { name: 'start-nest',
  packages: { '@nestjs/core': '11', '@nestjs/common': '11', '@nestjs/platform-express': '11', 'reflect-metadata': '0.2',
    rxjs: '7', typescript: '5', '@types/node': '20' }, project: 'nest', build: [['tsc', '--project', '.']],
  scripts: { start: 'nest start' }, start: ['npm'], args: () => ['start'], asks: { expects: 'hello from nest' } }, {
  name: 'start-astro',
  packages: { astro: '5', '@astrojs/node': '9' },
  project: 'astro',
  build: [['astro', 'build']],
  scripts: { start: 'node ./dist/server/entry.mjs' },
  start: ['.'],
  env: () => ({ HOST: '127.0.0.1' }),
  asks: { expects: 'hello from astro' }
}, { ...TYPESCRIPT, name: 'start-ts', packages: { tsx: '4' }, start: ['src/main.ts'] }, { ...TYPESCRIPT,
  name: 'start-tsx', packages: { tsx: '4' }, scripts: { dev: 'tsx watch --clear-screen=false src/main.ts' },
  start: ['npm'], args: () => ['run', 'dev'] }, { ...TYPESCRIPT, name: 'start-ts-node',
  packages: { 'ts-node': '10', typescript: '5', '@types/node': '20' },
  scripts: { dev: 'nodemon --watch src src/main.ts' }, start: ['--script', 'dev'] }, { name: 'start-queue-worker',
  packages: {}, files: ['bot.cjs'], scripts: { work: 'node bot.cjs' }, start: ['npm', '--ready-signal', 'online'],
  args: () => ['run', 'work'], listens: () => [] }]
