/** What the charts show, in the order in which the live page gets it. */
export const CHART_COLUMNS = Object.freeze([
  'requestsPerSecond',
  'requests5xxPerSecond',
  'latencyP99Ms',
  'latencyP50Ms',
  'cpuPercent',
  'rssBytes',
  'loopDelayP99Ms'
])
