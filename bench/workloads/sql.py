"""A real library in Python: sqlglot parses, optimizes and prints a shop's queries."""

import sqlglot
from sqlglot.optimizer import optimize

SIZE, WARM = 3, 1

SCHEMA = {
    "customers": {"id": "int", "name": "text", "country": "text", "since": "date"},
    "orders": {"id": "int", "customer_id": "int", "placed": "date", "state": "text"},
    "lines": {"order_id": "int", "product_id": "int", "amount": "int", "price": "int"},
    "products": {"id": "int", "name": "text", "kind": "text", "cost": "int"},
    "visits": {"customer_id": "int", "day": "date", "pages": "int", "source": "text"},
}

QUERIES = [
    """
    SELECT c.country, p.kind, SUM(l.amount * l.price) AS revenue
    FROM customers AS c
    JOIN orders AS o ON o.customer_id = c.id
    JOIN lines AS l ON l.order_id = o.id
    JOIN products AS p ON p.id = l.product_id
    WHERE o.placed BETWEEN CAST('2024-01-01' AS DATE) AND CAST('2024-12-31' AS DATE)
      AND NOT (o.state = 'cancelled' OR o.state = 'returned')
    GROUP BY c.country, p.kind
    HAVING SUM(l.amount) > 10
    ORDER BY revenue DESC
    LIMIT 20
    """,
    """
    WITH totals AS (
      SELECT o.customer_id, o.id, SUM(l.amount * l.price) AS total
      FROM orders AS o JOIN lines AS l ON l.order_id = o.id
      GROUP BY o.customer_id, o.id
    ), ranked AS (
      SELECT customer_id, total,
        ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY total DESC) AS place
      FROM totals
    )
    SELECT c.name, r.total FROM ranked AS r JOIN customers AS c ON c.id = r.customer_id
    WHERE r.place <= 3 AND r.total > 100
    """,
    """
    SELECT day, source, pages,
      AVG(pages) OVER (
        PARTITION BY source ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW
      ) AS week,
      LAG(pages, 1, 0) OVER (PARTITION BY source ORDER BY day) AS before,
      CASE WHEN pages > 100 THEN 'busy' WHEN pages > 10 THEN 'fair' ELSE 'calm' END
        AS mood
    FROM visits
    WHERE source IN ('search', 'mail', 'friend') OR source LIKE 'ad-%'
    """,
    """
    SELECT c.id, c.name,
      (SELECT MAX(o.placed) FROM orders AS o WHERE o.customer_id = c.id) AS latest
    FROM customers AS c
    WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.customer_id = c.id AND v.pages > 5)
      AND c.id NOT IN (SELECT customer_id FROM orders WHERE state = 'fraud')
      AND (c.country = 'FI' AND c.since > CAST('2020-05-01' AS DATE)
        OR c.country = 'EE' AND c.since > CAST('2021-05-01' AS DATE))
    """,
    """
    WITH RECURSIVE days AS (
      SELECT CAST('2024-01-01' AS DATE) AS day
      UNION ALL
      SELECT day + INTERVAL '1' DAY FROM days WHERE day < CAST('2024-02-01' AS DATE)
    )
    SELECT d.day, COUNT(DISTINCT v.customer_id) AS people,
      COALESCE(SUM(v.pages), 0) AS n
    FROM days AS d LEFT JOIN visits AS v ON v.day = d.day
    GROUP BY d.day
    ORDER BY d.day
    """,
    """
    SELECT 'product' AS what, name, cost + 0 * 1 AS value FROM products
    WHERE 1 = 1 AND cost > 2 + 3
    UNION ALL
    SELECT 'customer', x.name, x.n FROM (
      SELECT c.name, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place
      FROM customers AS c
      LEFT JOIN orders AS o ON o.customer_id = c.id AND o.state <> 'new'
      GROUP BY c.name
    ) AS x
    WHERE x.place < 100 AND TRUE
    """,
]


def run(size):
    length = 0
    for _ in range(size):
        for query in QUERIES:
            parsed = sqlglot.parse_one(query)
            length += len(optimize(parsed, schema=SCHEMA).sql(pretty=True))
    return length
