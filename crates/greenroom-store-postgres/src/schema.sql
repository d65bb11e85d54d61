SELECT pg_advisory_xact_lock(7145034921337);

CREATE SCHEMA IF NOT EXISTS @;

CREATE TABLE IF NOT EXISTS @.greenroom_meta (
    id integer PRIMARY KEY CHECK (id = 1),
    format integer NOT NULL
);
INSERT INTO @.greenroom_meta VALUES (1, 1) ON CONFLICT DO NOTHING;

CREATE SEQUENCE IF NOT EXISTS @.greenroom_version;

-- The free room in each page keeps updates of a row within its page, so that the index stays as it is.
CREATE TABLE IF NOT EXISTS @.greenroom_store (
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE IF NOT EXISTS @.greenroom_log (
    log text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE IF NOT EXISTS @.greenroom_entry (
    log text COLLATE "C",
    position bigint,
    value bytea NOT NULL,
    PRIMARY KEY (log, position)
);

-- Carries out many commits in one statement, so that no lock is ever held while a client thinks (or is stopped).
--
-- Writes come sorted by key and appends by log, so that all callers take their locks in one order. Write n belongs to
-- commit owners[n] (counted from 1); its condition is expecteds[n]: a version, 0 for "nothing is there", null for none;
-- effects[n] is 0 for none, 1 to put vals[n], 2 to remove. If a condition does not hold, founds[n] answers what is
-- there (0: nothing) and nothing of that commit is applied; otherwise versions[n] answers the version that was given.
-- alones[n] says that the write is all of its commit, so it is applied at once; others are checked first.
CREATE OR REPLACE FUNCTION @.greenroom_commit(
    patience_ms integer, commits integer,
    keys text[], owners integer[], alones boolean[], expecteds bigint[], effects integer[], vals bytea[],
    logs text[], log_owners integer[], entries bytea[],
    OUT versions bigint[], OUT founds bigint[], OUT positions bigint[]
) LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    writes CONSTANT integer := cardinality(keys);
    appends CONSTANT integer := cardinality(logs);
    refused boolean[] := array_fill(false, ARRAY[commits]);
    current bigint;
    known integer;
    together boolean;
    ending bigint;
    n integer;
    first integer;
BEGIN
    PERFORM set_config('lock_timeout', patience_ms || 'ms', true);
    SELECT m.format INTO known FROM @.greenroom_meta m;
    IF known IS DISTINCT FROM 1 THEN
        RAISE EXCEPTION 'format %', known USING ERRCODE = 'GR001';
    END IF;
    versions := array_fill(NULL::bigint, ARRAY[writes]);
    founds := array_fill(NULL::bigint, ARRAY[writes]);
    positions := array_fill(NULL::bigint, ARRAY[appends]);

    -- If all are replacements that stand alone, as is usual, one statement does them, in the order of their keys.
    together := appends = 0 AND NOT false = ANY (alones) AND 0 < ALL (expecteds) AND 1 = ALL (effects);
    IF together THEN
        FOR n, current IN
            UPDATE @.greenroom_store s SET version = nextval('@.greenroom_version'), value = i.value
            FROM unnest(keys, expecteds, vals) WITH ORDINALITY AS i(key, expected, value, n)
            WHERE s.key = i.key AND s.version = i.expected RETURNING i.n, s.version
        LOOP
            versions[n] := current;
        END LOOP;
    END IF;

    FOR n IN 1..writes LOOP
        CONTINUE WHEN together AND versions[n] IS NOT NULL;
        current := NULL;
        IF together THEN
            NULL;
        ELSIF alones[n] AND expecteds[n] > 0 AND effects[n] = 1 THEN
            UPDATE @.greenroom_store s SET version = nextval('@.greenroom_version'), value = vals[n]
                WHERE s.key = keys[n] AND s.version = expecteds[n] RETURNING s.version INTO current;
            versions[n] := current;
        ELSIF alones[n] AND expecteds[n] > 0 AND effects[n] = 2 THEN
            DELETE FROM @.greenroom_store s WHERE s.key = keys[n] AND s.version = expecteds[n]
                RETURNING s.version INTO current;
        ELSIF alones[n] AND expecteds[n] = 0 THEN
            INSERT INTO @.greenroom_store AS s (key, version, value)
                VALUES (keys[n], nextval('@.greenroom_version'), vals[n])
                ON CONFLICT DO NOTHING RETURNING s.version INTO current;
            versions[n] := current;
        ELSE
            IF effects[n] = 0 THEN
                SELECT s.version INTO current FROM @.greenroom_store s WHERE s.key = keys[n] FOR SHARE;
            ELSE
                SELECT s.version INTO current FROM @.greenroom_store s WHERE s.key = keys[n] FOR UPDATE;
            END IF;
            current := coalesce(current, 0);
            IF current <> coalesce(expecteds[n], current) THEN
                founds[n] := current;
                refused[owners[n]] := true;
            END IF;
        END IF;
        IF current IS NULL THEN
            SELECT s.version INTO current FROM @.greenroom_store s WHERE s.key = keys[n];
            founds[n] := coalesce(current, 0);
            refused[owners[n]] := true;
        END IF;
    END LOOP;
    IF together THEN
        RETURN;
    END IF;

    FOR n IN 1..writes LOOP
        IF refused[owners[n]] OR effects[n] = 0 OR alones[n] AND expecteds[n] IS NOT NULL THEN
            CONTINUE;
        ELSIF effects[n] = 2 THEN
            DELETE FROM @.greenroom_store s WHERE s.key = keys[n];
        ELSIF expecteds[n] = 0 THEN
            INSERT INTO @.greenroom_store AS s (key, version, value)
                VALUES (keys[n], nextval('@.greenroom_version'), vals[n]) RETURNING s.version INTO current;
            versions[n] := current;
        ELSE
            INSERT INTO @.greenroom_store AS s (key, version, value)
                VALUES (keys[n], nextval('@.greenroom_version'), vals[n])
                ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value
                RETURNING s.version INTO current;
            versions[n] := current;
        END IF;
    END LOOP;

    first := 1;
    WHILE first <= appends LOOP
        ending := NULL;
        FOR n IN first..appends LOOP
            EXIT WHEN logs[n] <> logs[first];
            CONTINUE WHEN refused[log_owners[n]];
            IF ending IS NULL THEN
                SELECT l.last INTO ending FROM @.greenroom_log l WHERE l.log = logs[n] FOR UPDATE;
                IF NOT FOUND THEN
                    INSERT INTO @.greenroom_log AS l VALUES (logs[n], 0)
                        ON CONFLICT (log) DO UPDATE SET last = l.last RETURNING l.last INTO ending;
                END IF;
            END IF;
            ending := ending + 1;
            positions[n] := ending;
        END LOOP;
        UPDATE @.greenroom_log l SET last = ending WHERE l.log = logs[first] AND ending IS NOT NULL;
        n := first;
        WHILE n <= appends AND logs[n] = logs[first] LOOP
            n := n + 1;
        END LOOP;
        first := n;
    END LOOP;
    IF appends > 0 THEN
        INSERT INTO @.greenroom_entry (log, position, value)
            SELECT a.log, a.position, a.value FROM unnest(logs, positions, entries) AS a(log, position, value)
            WHERE a.position IS NOT NULL;
    END IF;
END
$body$
