// Packages without types of their own.
declare module 'autocannon'
declare module 'supertest'
