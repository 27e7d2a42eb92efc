import type { Program } from '../programs.ts'

/** What is loaded before the app and puts itself into its modules; none has a backend here. */
export const AGENTS: Program[] = [{ name: 'opentelemetry',
  packages: { '@opentelemetry/auto-instrumentations-node': '0.60', '@opentelemetry/api': '1', express: '5' },
  entry: 'express.cjs', flags: () => ['--exec-argv', '--require @opentelemetry/auto-instrumentations-node/register'],
  env: () => ({ OTEL_SERVICE_NAME: 'gallery', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_LOG_LEVEL: 'none' }), outlivesSigterm: true, asks: { expects: 'hello from express' } }, { name: 'dd-trace',
  packages: { 'dd-trace': '5', express: '5' }, entry: 'express.cjs',
  flags: () => ['--exec-argv', '--import dd-trace/initialize.mjs'],
  env: () => ({ DD_TRACE_AGENT_URL: 'http://127.0.0.1:9', DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false' }),
  asks: { expects: 'hello from express' } }, { name: 'newrelic', packages: { newrelic: '12', express: '5' },
  files: ['express.cjs', 'newrelic.cjs'], entry: 'express.cjs', flags: () => ['--exec-argv', '--require newrelic'],
  asks: { expects: 'hello from express' } }, { name: 'elastic-apm', packages: { 'elastic-apm-node': '4', express: '5' },
  entry: 'express.cjs', flags: () => ['--exec-argv', '--require elastic-apm-node/start'],
  env: () => ({ ELASTIC_APM_SERVER_URL: 'http://127.0.0.1:9', ELASTIC_APM_LOG_LEVEL: 'off' }),
  asks: { expects: 'hello from express' } }, { name: 'sentry', packages: { '@sentry/node': '9', express: '5' },
  files: ['express.cjs', 'sentry.cjs'], entry: 'express.cjs', flags: () => ['--exec-argv', '--require ./sentry.cjs'],
  asks: { expects: 'hello from express' } }]
