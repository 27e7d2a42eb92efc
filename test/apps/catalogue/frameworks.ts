import type { Program } from '../programs.ts'

/** What answers requests by its own code, written with this or that. */
export const FRAMEWORKS: Program[] = [
  { name: 'express', packages: { express: '5' }, entry: 'express.cjs', asks: { expects: 'hello from express' } },
  { name: 'express-4', packages: { express: '4' }, entry: 'express.cjs', asks: { expects: 'hello from express' } },
  { name: 'express-session', packages: { 'express-session': '1', express: '5' }, entry: 'express-session.cjs', asks: { expects: 'hello for the 1th time' } },
  { name: 'koa', packages: { koa: '3' }, entry: 'koa.cjs', asks: { expects: 'hello from koa' } },
  { name: 'hapi', packages: { '@hapi/hapi': '21' }, entry: 'hapi.cjs', asks: { expects: 'hello from hapi' } },
  { name: 'fastify', packages: { fastify: '5' }, entry: 'fastify.mjs', asks: { expects: 'from fastify' } },
  {
    name: 'nest',
    packages: { '@nestjs/core': '11', '@nestjs/common': '11', '@nestjs/platform-express': '11', 'reflect-metadata': '0.2', rxjs: '7', typescript: '5', '@types/node': '20' },
    project: 'nest',
    build: [['tsc', '--project', '.']],
    entry: 'dist/main.js',
    asks: { expects: 'hello from nest' }
  },
  {
    name: 'next',
    packages: { next: '15', react: '19', 'react-dom': '19' },
    project: 'next',
    build: [['next', 'build']],
    entry: 'node_modules/.bin/next',
    args: () => ['start'],
    env: () => ({ NEXT_TELEMETRY_DISABLED: '1' }),
    asks: { expects: 'hello from next' }
  },
  {
    name: 'astro',
    packages: { astro: '5', '@astrojs/node': '9' },
    project: 'astro',
    build: [['astro', 'build']],
    entry: 'dist/server/entry.mjs',
    env: () => ({ HOST: '127.0.0.1' }),
    asks: { expects: 'hello from astro' }
  },
  { name: 'nitro', packages: { nitropack: '2', h3: '1' }, project: 'nitro', build: [['nitropack', 'build']], entry: '.output/server/index.mjs', asks: { expects: 'hello from nitro' } },
  {
    name: 'nuxt',
    packages: { nuxt: '3' },
    project: 'nuxt',
    build: [['nuxt', 'build']],
    entry: '.output/server/index.mjs',
    env: () => ({ HOST: '127.0.0.1' }),
    asks: { expects: 'hello from nuxt' }
  },
  {
    name: 'sveltekit',
    packages: { '@sveltejs/kit': '2', '@sveltejs/adapter-node': '5', '@sveltejs/vite-plugin-svelte': '6', svelte: '5', vite: '7' },
    type: 'module',
    project: 'sveltekit',
    build: [['vite', 'build']],
    entry: 'build/index.js',
    env: () => ({ HOST: '127.0.0.1' }),
    asks: { expects: 'hello from sveltekit' }
  },
  {
    name: 'react-router',
    packages: { 'react-router': '7.18.4', '@react-router/serve': '7.18.4', '@react-router/node': '7.18.4', '@react-router/dev': '7.18.4', react: '19', 'react-dom': '19', vite: '7', isbot: '5' },
    project: 'react-router',
    build: [['react-router', 'build']],
    entry: 'node_modules/.bin/react-router-serve',
    args: () => ['build/server/index.js'],
    env: () => ({ NODE_ENV: 'production', HOST: '127.0.0.1' }),
    asks: { expects: 'hello from react-router' }
  },
  {
    // Its admin panel is left out: it would take minutes to build.
    name: 'strapi',
    packages: { '@strapi/strapi': '5.54.0', 'better-sqlite3': '12.11.1', react: '18', 'react-dom': '18', 'react-router-dom': '6', 'styled-components': '6' },
    compiles: ['better-sqlite3'],
    project: 'strapi',
    entry: 'node_modules/.bin/strapi',
    args: () => ['start'],
    // This file has the time of the last look for a newer version, which may be lost.
    flags: () => ['--ready-timeout-ms', '120000', '--releases-exclude', '.strapi-updater.json'],
    env: () => ({ NODE_ENV: 'production', STRAPI_TELEMETRY_DISABLED: 'true' }),
    writes: ['.tmp/', 'public/uploads/'],
    asks: { path: '/hello', expects: 'hello from strapi' }
  },
  {
    name: 'pnpm-workspace',
    packages: {},
    manager: ['pnpm@9', 'pnpm'],
    project: 'pnpm-workspace',
    entry: 'packages/web/web.cjs',
    asks: { expects: 'hello from pnpm-workspace' }
  },
  {
    name: 'yarn-pnp',
    packages: {},
    manager: ['@yarnpkg/cli-dist@4', 'yarn'],
    project: 'yarn-pnp',
    start: ['yarn'],
    args: () => ['start'],
    asks: { expects: 'hello from yarn-pnp' }
  },
  { name: 'h3', packages: { h3: '1' }, entry: 'h3.mjs', asks: { expects: 'hello from h3' } },
  { name: 'restify', packages: { restify: '11' }, entry: 'restify.cjs', asks: { expects: 'hello from restify' } },
  { name: 'polka', packages: { polka: '0.5' }, entry: 'polka.cjs', asks: { expects: 'hello from polka' } },
  {
    name: 'micro',
    packages: { micro: '10' },
    files: ['micro.cjs'],
    entry: 'node_modules/.bin/micro',
    args: ({ socket }) => ['--listen', `unix:${socket}`, 'micro.cjs'],
    listens: ({ socket }) => [socket],
    asks: { over: 'socket', expects: 'hello from micro' }
  },
  { name: 'hono', packages: { hono: '4', '@hono/node-server': '1' }, entry: 'hono.mjs', asks: { expects: 'hello from hono' } },
  { name: 'elysia', packages: { elysia: '1.4', '@elysiajs/node': '1.4' }, entry: 'elysia.mjs', asks: { expects: 'hello from elysia' } },
  { name: 'feathers', packages: { '@feathersjs/feathers': '5', '@feathersjs/koa': '5' }, entry: 'feathers.mjs', asks: { path: '/messages', expects: 'hello from feathers' } },
  { name: 'loopback', packages: { '@loopback/rest': '15', '@loopback/core': '7' }, entry: 'loopback.cjs', asks: { expects: 'hello from loopback' } },
  { name: 'moleculer', packages: { moleculer: '0.14', 'moleculer-web': '0.10' }, entry: 'moleculer.cjs', asks: { expects: 'hello from moleculer' } },
  { name: 'sails', packages: { sails: '1' }, entry: 'sails.cjs', asks: { expects: 'hello from sails' } },
  { name: 'tinyhttp', packages: { '@tinyhttp/app': '3' }, entry: 'tinyhttp.mjs', asks: { expects: 'hello from tinyhttp' } },
  { name: 'connect', packages: { connect: '3' }, entry: 'connect.cjs', asks: { expects: 'hello from connect' } },
  { name: 'trpc', packages: { '@trpc/server': '11' }, entry: 'trpc.mjs', asks: { path: '/hello', expects: 'hello from trpc' } },
  {
    name: 'apollo',
    packages: { '@apollo/server': '5', graphql: '16' },
    entry: 'apollo.mjs',
    asks: { ...graphql('/'), expects: 'hello from apollo' }
  },
  { name: 'yoga', packages: { 'graphql-yoga': '5', graphql: '16' }, entry: 'yoga.mjs', asks: { ...graphql('/graphql'), expects: 'hello from yoga' } },
  { name: 'mercurius', packages: { mercurius: '16', fastify: '5', graphql: '16' }, entry: 'mercurius.mjs', asks: { ...graphql('/graphql'), expects: 'hello from mercurius' } },
  {
    name: 'graphql-http',
    packages: { 'graphql-http': '1', express: '5', graphql: '16' },
    entry: 'express-graphql-http.cjs',
    asks: { ...graphql('/graphql'), expects: 'hello from graphql-http' }
  }
]

function graphql (path: string) {
  return { path, method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ hello }"}' }
}
