/** The columns that the charts show, in the order in which the live page gets them. */
export const CHART_COLUMNS = Object.freeze(['requestsPerSecond', 'requests5xxPerSecond', 'latencyP99Ms', 'latencyP50Ms',
  'cpuPercent', 'rssBytes', 'loopDelayP99Ms', 'openConnections', 'threads', 'descriptors'])
